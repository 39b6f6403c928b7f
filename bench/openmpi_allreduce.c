/* One line: mean time in microseconds of an allreduce of float sums among the ranks of mpirun.
 *   openmpi_allreduce BYTES ITERATIONS IN_PLACE(0|1)
 * Buffers lie in huge pages where the system gives them, as those of the other side do. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

static float* Allocate(size_t bytes) {
  void* memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) MPI_Abort(MPI_COMM_WORLD, 1);
  madvise(memory, bytes, MADV_HUGEPAGE);
  return memory;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const size_t bytes = argc > 1 ? strtoull(argv[1], NULL, 10) : (size_t)64 << 20;
  const int iterations = argc > 2 ? atoi(argv[2]) : 20, in_place = argc > 3 && atoi(argv[3]) != 0;
  const int count = (int)(bytes / sizeof(float));
  float *input = Allocate(bytes), *output = Allocate(bytes);
  for (int i = 0; i < count; ++i) input[i] = (float)(i % 1000 + rank), output[i] = 0;
  const void* source = in_place ? MPI_IN_PLACE : (const void*)input;
  for (int i = 0; i < 3; ++i) MPI_Allreduce(source, output, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
  for (int i = 0; i < iterations; ++i) MPI_Allreduce(source, output, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  double mine = (MPI_Wtime() - start) / iterations * 1e6, sum = 0;
  MPI_Reduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("%.1f\n", sum / ranks);
  MPI_Finalize();
  return 0;
}
