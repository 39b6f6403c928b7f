/* Times of MPI's collectives, for vs_mpi.py: mpi_times COLLECTIVE SIZE... prints "SIZE MICROSECONDS" for each, the
 * slowest rank's mean over iterations, after a warm-up. Sizes are nccl-tests': an allgather of S gathers S bytes. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void run(const char *what, void *in, void *out, long bytes, int ranks) {
  const int count = (int)(bytes / 4), part = count / ranks;
  if (!strcmp(what, "allreduce")) MPI_Allreduce(in, out, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  if (!strcmp(what, "allgather")) MPI_Allgather(in, part, MPI_FLOAT, out, part, MPI_FLOAT, MPI_COMM_WORLD);
  if (!strcmp(what, "alltoall")) MPI_Alltoall(in, part, MPI_FLOAT, out, part, MPI_FLOAT, MPI_COMM_WORLD);
}

int main(int argc, char **argv) {
  int rank, ranks;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (int i = 2; i < argc; ++i) {
    const long bytes = atol(argv[i]);
    const int iterations = bytes < 100000 ? 1000 : bytes < 2000000 ? 50 : 3;
    void *in = calloc(1, (size_t)bytes), *out = calloc(1, (size_t)bytes);
    for (int k = 0; k < (iterations + 9) / 10; ++k) run(argv[1], in, out, bytes, ranks);
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    for (int k = 0; k < iterations; ++k) run(argv[1], in, out, bytes, ranks);
    double mine = (MPI_Wtime() - start) * 1e6 / iterations, slowest = 0;
    MPI_Reduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0) printf("%ld %.2f\n", bytes, slowest);
    free(in);
    free(out);
  }
  MPI_Finalize();
  return 0;
}
