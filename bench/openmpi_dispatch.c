/* One line: median time in microseconds, of the slowest rank of each call, of the first half of an expert
 * dispatch by MPI: every rank draws TOP_K different experts for each of its TOKENS tokens, packs a row and
 * its header for each rank that holds one of them, and exchanges the counts and then the rows.
 *   openmpi_dispatch TOKENS ROW_BYTES EXPERTS TOP_K CALLS
 * Rows stay as they come: neither sorted by experts nor without their headers. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static char* Allocate(size_t bytes) {
  void* memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) MPI_Abort(MPI_COMM_WORLD, 1);
  madvise(memory, bytes, MADV_HUGEPAGE);
  memset(memory, 1, bytes);
  return memory;
}

/* Knuth's linear congruential generator of 64 bits. */
static uint64_t state;
static int Below(int bound) {
  state = state * 6364136223846793005ULL + 1442695040888963407ULL;
  return (int)((state >> 33) % (uint64_t)bound);
}

static void Draw(int* choices, int tokens, int experts, int top_k) {
  for (int t = 0; t < tokens; ++t)
    for (int k = 0; k < top_k; ++k) {
      int taken = 1;
      while (taken) {
        choices[t * top_k + k] = Below(experts);
        taken = 0;
        for (int i = 0; i < k; ++i) taken |= choices[t * top_k + i] == choices[t * top_k + k];
      }
    }
}

static int Compare(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (argc != 6) MPI_Abort(MPI_COMM_WORLD, 2);
  const int tokens = atoi(argv[1]), row = atoi(argv[2]), experts = atoi(argv[3]), top_k = atoi(argv[4]),
            calls = atoi(argv[5]);
  /* Home, token, and a weight and an expert for each position, as a multiple of 16 bytes. */
  const int header = (8 + 6 * top_k + 15) / 16 * 16, stride = header + row, local = experts / ranks;
  const size_t most = (size_t)ranks * tokens * stride;
  char *rows = Allocate((size_t)tokens * row), *packed = Allocate(most), *received = Allocate(most);
  int* choices = malloc(sizeof(int) * tokens * top_k);
  int* counts = malloc(sizeof(int) * 5 * ranks);
  int *send = counts + ranks, *send_at = send + ranks, *receive = send_at + ranks,
      *receive_at = receive + ranks;
  double* times = malloc(sizeof(double) * calls);
  MPI_Datatype packed_row;
  MPI_Type_contiguous(stride, MPI_BYTE, &packed_row);
  MPI_Type_commit(&packed_row);
  state = (uint64_t)rank + 1;
  for (int call = 0; call < calls; ++call) {
    Draw(choices, tokens, experts, top_k);
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    memset(send, 0, sizeof(int) * ranks);
    for (int pass = 0; pass < 2; ++pass) {
      for (int t = 0; t < tokens; ++t)
        for (int k = 0; k < top_k; ++k) {
          const int to = choices[t * top_k + k] / local;
          int first = 1;
          for (int i = 0; i < k; ++i) first &= choices[t * top_k + i] / local != to;
          if (!first) continue;
          if (pass == 0) {
            ++send[to];
            continue;
          }
          char* const at = packed + (size_t)(send_at[to] + counts[to]++) * stride;
          const int head[2] = {rank, t};
          memcpy(at, head, sizeof head);
          memcpy(at + header, rows + (size_t)t * row, row);
        }
      if (pass == 1) break;
      send_at[0] = 0;
      for (int r = 1; r < ranks; ++r) send_at[r] = send_at[r - 1] + send[r - 1];
      memset(counts, 0, sizeof(int) * ranks);
    }
    MPI_Alltoall(send, 1, MPI_INT, receive, 1, MPI_INT, MPI_COMM_WORLD);
    receive_at[0] = 0;
    for (int r = 1; r < ranks; ++r) receive_at[r] = receive_at[r - 1] + receive[r - 1];
    MPI_Alltoallv(packed, send, send_at, packed_row, received, receive, receive_at, packed_row,
                  MPI_COMM_WORLD);
    const double mine = (MPI_Wtime() - start) * 1e6;
    MPI_Reduce(&mine, &times[call], 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  }
  qsort(times, calls, sizeof(double), Compare);
  if (rank == 0) printf("%.1f\n", times[calls / 2]);
  MPI_Finalize();
  return 0;
}
