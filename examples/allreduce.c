/* The C API in one page: the sum of all ranks' numbers ends on every rank.
 *
 *   mpirun -n 4 xccl-synth exec -- ./allreduce        (finds or makes the plan book)
 *
 * With a book of your own:
 *   mkdir book
 *   xccl-synth plan full-mesh:4 --collective allreduce -o book/allreduce.plan.json
 *   echo '{"format":1,"plans":[{"file":"allreduce.plan.json","collective":"allreduce","ranks":4}]}' > book/index.json
 *   bazel run //examples:allreduce -- $PWD/book 4
 *
 * Under mpirun, srun or torchrun the ranks are processes, and the number of ranks is the launcher's:
 *   mpirun -n 4 bazel-bin/examples/allreduce $PWD/book
 */
#include <stdio.h>
#include <stdlib.h>
#include <xccl.h>

#define COUNT 1000000

static void Check(xcclResult_t result, xcclComm_t comm) {
  if (result == xcclSuccess) return;
  fprintf(stderr, "%s: %s\n", xcclGetErrorString(result), xcclGetLastError(comm));
  exit(1);
}

int main(int argc, char** argv) {
  /* allreduce [BOOK [RANKS]]; NULL is the book that XCCL_BOOK names. */
  const char* book = argc > 1 ? argv[1] : NULL;
  /* One communicator per rank: all of them here, or this process's own. */
  const int here = argc > 2 ? atoi(argv[2]) : 1;
  xcclComm_t* comms = calloc((size_t)(here > 0 ? here : 1), sizeof *comms);
  float** numbers = calloc((size_t)(here > 0 ? here : 1), sizeof *numbers);
  if (argc > 2)
    Check(xcclCommInitAll(comms, here, NULL), NULL);
  else
    Check(xcclCommInitFromLauncher(&comms[0]), NULL);
  int ranks = 0;
  Check(xcclCommCount(comms[0], &ranks), NULL);
  /* Calls return at once, so that one thread can drive all ranks. */
  for (int i = 0; i < here; ++i) {
    int rank = 0;
    Check(xcclCommLoadPlanBook(comms[i], book), NULL);
    Check(xcclCommUserRank(comms[i], &rank), NULL);
    numbers[i] = malloc(COUNT * sizeof(float));
    for (int k = 0; k < COUNT; ++k) numbers[i][k] = (float)(rank + k % 100);
    Check(xcclAllReduce(numbers[i], numbers[i], COUNT, xcclFloat32, xcclSum, comms[i], NULL), NULL);
  }
  int wrong = 0;
  for (int i = 0; i < here; ++i) {
    Check(xcclCommSynchronize(comms[i]), comms[i]);
    for (int k = 0; k < COUNT; ++k)
      wrong += numbers[i][k] != (float)(ranks * (ranks - 1) / 2 + ranks * (k % 100));
    Check(xcclCommDestroy(comms[i]), NULL);
    free(numbers[i]);
  }
  printf("%d ranks, %d here, %d elements, %d wrong\n", ranks, here, COUNT, wrong);
  free(numbers);
  free(comms);
  return wrong != 0;
}
