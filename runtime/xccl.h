/* XCCL's C API, with NCCL's manners: a communicator per rank, calls that return at once, asynchronous errors.
 *
 * Plans. A communicator runs the plans of the books loaded into it (xcclCommLoadPlanBook) and nothing else: a
 * call that no plan serves fails with xcclInvalidUsage and a text that says what the books have. Books add
 * up: a call takes its plan from the book loaded last that has one for it, and within a book the first entry
 * that serves it. A call of no elements does nothing and needs no plan. A communicator of one rank on the CPU
 * needs none either: it copies within the call. Nor do messages between pairs (xcclSend). Expert dispatch has
 * plans of its own (xcclCommLoadExperts).
 *
 * Devices. Buffers are this host's memory, or, after xcclCommUseCuda, a GPU's. Each plan of a book then needs
 * its generated kernel there (index.json: "kernel"), which is compiled once and cached. A plan without one
 * runs on the interpreter kernel, and xcclCommGetNotices says so.
 *
 * Streams. On the CPU every communicator executes its calls in order on a thread of its own; the stream
 * argument is ignored and may be NULL. Calls queue up without a bound, a hundred bytes each. On a GPU a call
 * is one kernel on the CUDA stream given (NULL: the default stream), which may be captured into a graph;
 * nothing waits for it. Calls of a rank follow each other whatever their streams; replays of graphs are
 * ordered by whoever replays. Ranks that share a GPU need a stream each. A kernel waits for the other ranks'
 * while it runs, so all ranks launch their calls in one order, also those of several communicators. The
 * communicators of a process share the GPU's multiprocessors, each holding what its largest plan needs: plans
 * that do not fit are refused when they are loaded. Buffers belong to the communicator from the call until
 * xcclCommSynchronize returns. Because calls do not wait, one thread may drive several communicators; it
 * makes the first call of a type and operator, which loads a kernel, for each of them before the next call of
 * any.
 *
 * Groups. Calls between xcclGroupStart and the outermost xcclGroupEnd of a thread are kept and run at its
 * end: first the loads of books, connections, splits and shrinks, side by side, so that one thread can make
 * them for several ranks; then messages, those of a communicator side by side; then the collectives, in their
 * order. All other calls act at once, xcclCommInitRank among them. Where a call in the group is refused at
 * once, the group runs nothing and ends with that result. Where no plan serves one of its collectives, it
 * ends with that after the loads and runs no message and no collective. Else it ends with the first failure
 * of what it ran. A buffer of a kept call belongs to the communicator from that call on.
 *
 * Processes. Ranks that are processes meet when they load their first book, on one host or on several:
 * through the id that one of them made, or where their launcher says. xcclCommLoadPlanBook waits for all of
 * them. If it cannot read its book on one rank it fails on all, and may be tried again. Ranks of one host
 * share memory, the others use the network; GPUs are those of one host.
 *
 * Without blocking. A communicator with blocking = 0 does not wait for other ranks: xcclCommLoadPlanBook,
 * xcclCommConnect, xcclCommSplit and xcclCommShrink return xcclInProgress and go on, one at a time, on a
 * thread of the library. xcclCommGetAsyncError says xcclInProgress until that is done, and then its result;
 * only then *newcomm is set. The end of a group waits, and so do xcclCommSynchronize and xcclCommDestroy.
 *
 * Errors. A failure on any rank ends the operation on all; afterwards every call on the communicator returns
 * it, and xcclGetLastError has its text, which names the rank. Ranks that are idle learn of it through
 * xcclCommGetAsyncError. There is no time limit unless xcclCommSetTimeLimit sets one: a rank may be late by
 * as long as it likes. A limit finds ranks that stop without a message. Ranks whose process ends are found
 * within milliseconds; so is a rank that has destroyed its communicator and is waited for. A process that
 * ends without xcclCommDestroy has failed. On the CPU, ranks whose calls differ in collective, count, type,
 * operator or root fail with xcclInvalidUsage and a text that has both calls. A call that is refused
 * (xcclInvalidArgument, or xcclInvalidUsage at once) has done nothing, and the communicator goes on.
 *
 * Threads. All functions may be called from any thread at any time. Calls that threads make at the same time
 * run in one order or the other, which must be the same on all ranks. xcclCommAbort wakes the threads that
 * wait in other calls on the communicator; it is freed when the last of them has returned. A handle is never
 * used twice: a call with one that was destroyed or aborted returns xcclInvalidArgument.
 *
 * Forks. A process that is forked has none of the library's threads: every call on a communicator of its
 * parent returns xcclInvalidUsage there, xcclCommDestroy included. It may make communicators of its own. The
 * sockets of its parent's are closed there, so the others miss the parent when it ends.
 *
 * In place works as in NCCL: allgather sends from recvbuff + rank * sendcount, reduce_scatter receives at
 * sendbuff + rank * recvcount, gather and scatter likewise at the root, the others use equal pointers. Ranks
 * may differ in it. On the CPU buffers may overlap in any other way too, alltoall's included, and plans need
 * not run in place: the input is then copied first. On a GPU such calls are refused.
 *
 * Overlap. Messages that are one operation (xcclSend) each have the data that their range held when the
 * operation began: sends that a receive of the operation writes into are copied first. xcclInvalidArgument
 * refuses, before anything runs, two receives of one operation that share bytes. It also refuses a group in
 * which calls on two communicators share bytes that one of them writes, since communicators on the CPU run
 * side by side. Outside of a group the program sees to that: what a call writes belongs to its communicator
 * until xcclCommSynchronize returns. On a GPU the streams order calls on several communicators.
 */
#ifndef XCCL_RUNTIME_XCCL_H_
#define XCCL_RUNTIME_XCCL_H_

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define XCCL_MAJOR 0
#define XCCL_MINOR 1
#define XCCL_PATCH 0
#define XCCL_VERSION(major, minor, patch) ((major)*10000 + (minor)*100 + (patch))
#define XCCL_VERSION_CODE XCCL_VERSION(XCCL_MAJOR, XCCL_MINOR, XCCL_PATCH)

typedef struct xcclComm* xcclComm_t;
typedef void* xcclStream_t;

#define XCCL_UNIQUE_ID_BYTES 128
typedef struct {
  char internal[XCCL_UNIQUE_ID_BYTES];
} xcclUniqueId;

typedef enum {
  xcclSuccess = 0,
  xcclUnhandledCudaError = 1, /* NCCL's; this library says what it was by another code */
  xcclSystemError = 2,        /* memory, threads, open files: the machine */
  xcclInternalError = 3,      /* a bug of this library */
  xcclInvalidArgument = 4,    /* a null pointer; a rank, root, count or handle that cannot be */
  xcclInvalidUsage = 5,       /* no plan serves the call, a file is wrong */
  xcclRemoteError = 6,        /* a rank ended, was aborted, or stopped */
  xcclInProgress = 7          /* a communicator that does not block goes on by itself */
} xcclResult_t;

typedef enum {
  xcclInt8 = 0,
  xcclChar = 0,
  xcclUint8 = 1,
  xcclInt32 = 2,
  xcclInt = 2,
  xcclUint32 = 3,
  xcclInt64 = 4,
  xcclUint64 = 5,
  xcclFloat16 = 6,
  xcclHalf = 6,
  xcclFloat32 = 7,
  xcclFloat = 7,
  xcclFloat64 = 8,
  xcclDouble = 8,
  xcclBfloat16 = 9,
  xcclFloat8e4m3 = 10,
  xcclFloat8e5m2 = 11,
  xcclNumTypes = 12
} xcclDataType_t;

typedef enum {
  xcclSum = 0,
  xcclProd = 1,
  xcclMax = 2,
  xcclMin = 3,
  xcclAvg = 4,
  xcclNumOps = 5,           /* from here on: those of xcclRedOpCreatePreMulSum */
  xcclMaxRedOp = 0x7fffffff /* no operator: the type holds any int */
} xcclRedOp_t;

typedef enum { xcclScalarDevice = 0, xcclScalarHostImmediate = 1 } xcclScalarResidence_t;

/* Fills *version with the library's XCCL_VERSION_CODE: major * 10000 + minor * 100 + patch. */
xcclResult_t xcclGetVersion(int* version);
const char* xcclGetErrorString(xcclResult_t result);
/* The text of a communicator's first failure; if there was none, that of the calling thread's last failed
 * call on it; with NULL, that of the thread's last failed call on any. "" where there was none. The eight
 * texts that a thread asked for last are valid. */
const char* xcclGetLastError(xcclComm_t comm);

/* Makes an id; one process makes it and gives it to all ranks by any means of the program. A thread and a
 * port of that process serve the ranks until they have met, as they load their first book, or until the
 * process has destroyed or aborted its last communicator of that id; ranks that still wait are told then. A
 * process that makes no communicator of its id serves it until the ranks have met or the process ends. */
xcclResult_t xcclGetUniqueId(xcclUniqueId* id);
/* One rank among processes, or threads, that have the same id. An id serves one communicator. */
xcclResult_t xcclCommInitRank(xcclComm_t* comm, int nranks, xcclUniqueId id, int rank);
/* What xcclCommInitRankConfig sets. It begins as XCCL_CONFIG_INITIALIZER, which says which header the program
 * was compiled with and leaves everything as it is without a configuration; so does XCCL_CONFIG_UNDEF_INT in
 * an int, and 0 elsewhere. Later headers add fields at the end. */
#define XCCL_CONFIG_MAGIC 0x7863636cu /* "xccl" */
#define XCCL_CONFIG_UNDEF_INT (-2147483647 - 1)
typedef struct {
  size_t size;
  unsigned int magic;
  unsigned int version;
  int blocking;       /* 1; 0: calls that wait for other ranks return xcclInProgress */
  int device;         /* as xcclCommUseCuda; undefined: the CPU */
  int maxCTAs;        /* as xcclCommLimitCuda */
  size_t memoryBytes; /* as xcclCommLimitCuda */
  double timeLimit;   /* seconds, as xcclCommSetTimeLimit */
} xcclConfig_t;
#define XCCL_CONFIG_INITIALIZER                                                        \
  {                                                                                    \
    sizeof(xcclConfig_t), XCCL_CONFIG_MAGIC, XCCL_VERSION_CODE, XCCL_CONFIG_UNDEF_INT, \
        XCCL_CONFIG_UNDEF_INT, XCCL_CONFIG_UNDEF_INT, 0, 0                             \
  }
/* xcclCommInitRank and the settings of *config, which may be NULL. After a failure *comm is NULL. Programs of
 * older headers lack fields, which are then unset. Of a newer header's fields the library ignores those that
 * are unset; one that is set is refused with xcclInvalidArgument. */
xcclResult_t xcclCommInitRankConfig(xcclComm_t* comm, int nranks, xcclUniqueId id, int rank,
                                    const xcclConfig_t* config);
/* One rank with rank and size from the environment of Open MPI, MPICH, Slurm or torchrun, or XCCL_RANK,
 * XCCL_SIZE and XCCL_ADDRESS. A program may make several, all ranks in the same order. */
xcclResult_t xcclCommInitFromLauncher(xcclComm_t* comm);
/* All ranks in this process; they read each other's buffers directly. devlist: the GPU of each rank, several
 * of which may be the same; NULL: they are on the CPU. */
xcclResult_t xcclCommInitAll(xcclComm_t* comms, int ndev, const int* devlist);

/* Makes communicators from one. All its ranks call Split; those of one color (0 or more) are in one new
 * communicator, in the order of their keys, ranks of one key in the order of their ranks. With
 * XCCL_SPLIT_NOCOLOR a rank is in none, and *newcomm is NULL. Shrink is called by the ranks that are not in
 * the list alone, with the same list, and keeps their order; the ranks of the list may have ended. With
 * XCCL_SHRINK_ABORT it first ends all calls on comm, which cannot be used any more; without, comm must not
 * have failed. Both wait for the other ranks that call them; in a group they run side by side with the loads
 * of books, and *newcomm is set when the group ends.
 *
 * The new communicator has the GPU, the limits and the time limit of comm where *config, which may be NULL,
 * leaves them as they are. It has no books: plans are for a number of ranks and their places, so it loads its
 * own. It lives on without comm. Among processes Split makes the ranks meet as a first book does; Shrink
 * expects that they have met. */
#define XCCL_SPLIT_NOCOLOR (-1)
#define XCCL_SHRINK_DEFAULT 0
#define XCCL_SHRINK_ABORT 1
xcclResult_t xcclCommSplit(xcclComm_t comm, int color, int key, xcclComm_t* newcomm,
                           const xcclConfig_t* config);
xcclResult_t xcclCommShrink(xcclComm_t comm, const int* excludeRanksList, int excludeRanksCount,
                            xcclComm_t* newcomm, const xcclConfig_t* config, int shrinkFlags);

/* All ranks load the same books in the same order, and may do so between calls. NULL: the book that the
 * variable XCCL_BOOK names, as xccl-synth exec sets it. */
xcclResult_t xcclCommLoadPlanBook(xcclComm_t comm, const char* directory);
/* Notes for the user on the books loaded so far, a line each: plans without a kernel, which run slower on the
 * interpreter kernel. "" where there is nothing. Valid as the texts of xcclGetLastError. */
const char* xcclCommGetNotices(xcclComm_t comm);
/* An operation is stuck when no rank moved for this long; 0 or infinity, as it is at first: never. It holds
 * for the calls that begin to run afterwards. On a GPU it is set before the first book is loaded. */
xcclResult_t xcclCommSetTimeLimit(xcclComm_t comm, double seconds);

/* Buffers are memory of this GPU from here on. Call it before the first book is loaded, on all ranks. */
xcclResult_t xcclCommUseCuda(xcclComm_t comm, int device);
/* The most thread blocks that a call may have on a rank (at first 32, or the plan's own threadblocks where
 * they are more; for experts one of each role, where those are more), and bytes of device memory for slots
 * and counters of a plan; 0 leaves either as it is. Call it before the first book is loaded, with the same
 * values on all ranks. */
xcclResult_t xcclCommLimitCuda(xcclComm_t comm, int max_ctas, size_t memory_bytes);

/* Among processes: lets the other ranks read and write this buffer of a GPU, so that data needs no copy in
 * between. All ranks call it, each with its buffer, in the same order and after a book was loaded; likewise
 * Deregister, before the memory is freed and when no call or graph uses it. 31 at once. Calls whose buffers
 * are within registered ones use them by themselves. *handle is NULL, and nothing is to be done, where it
 * makes no difference. */
xcclResult_t xcclCommRegister(xcclComm_t comm, void* buff, size_t size, void** handle);
xcclResult_t xcclCommDeregister(xcclComm_t comm, void* handle);

xcclResult_t xcclCommSynchronize(xcclComm_t comm); /* waits for all calls, returns their error */
xcclResult_t xcclCommFinalize(xcclComm_t comm);    /* the same */
/* Waits for all calls, and, between hosts, until the others have taken all that this rank sent them. The
 * communicator is gone in any case; a failure of its calls that no other call has returned is the result.
 * comm may be NULL. */
xcclResult_t xcclCommDestroy(xcclComm_t comm);
xcclResult_t xcclCommAbort(xcclComm_t comm); /* ends all calls on all ranks, then destroys */
xcclResult_t xcclCommGetAsyncError(xcclComm_t comm, xcclResult_t* error); /* without waiting */
xcclResult_t xcclCommCount(xcclComm_t comm, int* count);
xcclResult_t xcclCommUserRank(xcclComm_t comm, int* rank);
xcclResult_t xcclCommCuDevice(xcclComm_t comm, int* device); /* the GPU; xcclInvalidUsage on the CPU */

/* Makes an operator of this communicator: a sum of what every rank has, multiplied by its own *scalar, which
 * is of the type and rounded as a product is. Ranks may differ in the scalar, and in calling it with xcclSum.
 * The scalar is read in this call: xcclScalarHostImmediate alone is served. On a GPU it is refused with
 * xcclInvalidUsage. An operator may be destroyed when the calls with it have been made. */
xcclResult_t xcclRedOpCreatePreMulSum(xcclRedOp_t* op, const void* scalar, xcclDataType_t type,
                                      xcclScalarResidence_t residence, xcclComm_t comm);
xcclResult_t xcclRedOpDestroy(xcclRedOp_t op, xcclComm_t comm);

/* Memory for buffers, which may be any: in a process that has a communicator on a GPU, memory of the current
 * CUDA device, as cuMemAlloc gives it; else the host's, at a page. Of no bytes: NULL, which may be freed. */
xcclResult_t xcclMemAlloc(void** ptr, size_t size);
xcclResult_t xcclMemFree(void* ptr);

xcclResult_t xcclAllReduce(const void* sendbuff, void* recvbuff, size_t count, xcclDataType_t type,
                           xcclRedOp_t op, xcclComm_t comm, xcclStream_t stream);
xcclResult_t xcclBroadcast(const void* sendbuff, void* recvbuff, size_t count, xcclDataType_t type, int root,
                           xcclComm_t comm, xcclStream_t stream);
/* In place. */
xcclResult_t xcclBcast(void* buff, size_t count, xcclDataType_t type, int root, xcclComm_t comm,
                       xcclStream_t stream);
xcclResult_t xcclReduce(const void* sendbuff, void* recvbuff, size_t count, xcclDataType_t type,
                        xcclRedOp_t op, int root, xcclComm_t comm, xcclStream_t stream);
xcclResult_t xcclAllGather(const void* sendbuff, void* recvbuff, size_t sendcount, xcclDataType_t type,
                           xcclComm_t comm, xcclStream_t stream);
xcclResult_t xcclReduceScatter(const void* sendbuff, void* recvbuff, size_t recvcount, xcclDataType_t type,
                               xcclRedOp_t op, xcclComm_t comm, xcclStream_t stream);
xcclResult_t xcclAlltoAll(const void* sendbuff, void* recvbuff, size_t count, xcclDataType_t type,
                          xcclComm_t comm, xcclStream_t stream);
xcclResult_t xcclGather(const void* sendbuff, void* recvbuff, size_t count, xcclDataType_t type, int root,
                        xcclComm_t comm, xcclStream_t stream);
xcclResult_t xcclScatter(const void* sendbuff, void* recvbuff, size_t count, xcclDataType_t type, int root,
                         xcclComm_t comm, xcclStream_t stream);

/* Messages between two ranks, and alltoall with counts of its own for each pair; counts and displacements are
 * in elements. They need no plan: every rank has a connection to every other, which xcclCommConnect makes.
 * All ranks call that once, in the same place among their loads of books; it needs none. A rank's k-th
 * message to another is the other's k-th from it, and fails with xcclInvalidUsage and both sides in the text
 * where they differ in count, type, or in being of alltoallv.
 *
 * In a group all messages of a communicator are one operation, whose parts run side by side: any pattern ends
 * whose counterparts are in one group each, messages of a rank to itself among them. They run before the
 * group's collectives. Outside of a group each is an operation of its own, and may wait for its counterpart.
 * On a GPU they are refused with xcclInvalidUsage. */
xcclResult_t xcclCommConnect(xcclComm_t comm);
xcclResult_t xcclSend(const void* sendbuff, size_t count, xcclDataType_t type, int peer, xcclComm_t comm,
                      xcclStream_t stream);
xcclResult_t xcclRecv(void* recvbuff, size_t count, xcclDataType_t type, int peer, xcclComm_t comm,
                      xcclStream_t stream);
xcclResult_t xcclAlltoAllv(const void* sendbuff, const size_t* sendcounts, const size_t* sdispls,
                           void* recvbuff, const size_t* recvcounts, const size_t* rdispls,
                           xcclDataType_t type, xcclComm_t comm, xcclStream_t stream);

/* Expert dispatch and combine, for layers of mixtures of experts. A router chooses up to K of E experts for
 * every token; rank r of R holds the experts r*E/R up to (r+1)*E/R - 1. Dispatch brings each token's row once
 * to every rank that holds one of its experts; nobody knows the counts beforehand. Combine brings the
 * experts' rows back and adds them up. They run a plan that "xccl-synth plan MACHINE -c dispatch -o FILE"
 * made, on the CPU or on the GPUs of one host, whose ranks are of one process or of several. Plans on GPUs of
 * several hosts are refused with xcclInvalidUsage when they are loaded.
 *
 * All ranks load the same plan, in the same place among their loads of books; it needs no book, and serves
 * the handles made from then on. A handle keeps the ways of its last dispatch with choices: combine takes
 * them back, and a dispatch with sameChoices takes them again. So the backward pass of dispatch is combine
 * with the same handle, and that of combine is dispatch. Several handles may live, such as one for each
 * layer. All ranks make the same calls in the same order, each with handles whose last choices came in one
 * call; else they fail with xcclInvalidUsage and both calls in the text. A rank may have no tokens, or
 * receive none.
 *
 * Calls return at once; outputs are there when xcclCommSynchronize returns. Choices that do not fit the plan
 * and rows for which there is no room are found while a call runs, and end the communicator. A call for which
 * a header's struct has another size is refused.
 *
 * On a GPU a call is one kernel on the stream, which counts by itself: the host waits for nothing, and a
 * captured call serves other choices. All pointers of a call, of its counts too, are the device's, and `in`
 * and `out` themselves the host's. Rows are not packed there: a row's number is its home * maxTokens + its
 * token, so maxRows is ranks * maxTokens at least, and rowOfEntry and xcclRows go by these numbers. Where no
 * row came `out.rows` stays as it was, `homes`, `tokens` and `experts` have -1, and `weights` 0. rowBytes and
 * scaleBytes are multiples of 16, together at most the plan's rowBytes; rows of combine are a multiple of 16
 * bytes, at most twice the plan's; buffers of rows are aligned to 16 bytes. Ranks whose calls differ are not
 * told so: they wait for each other until the time limit. A rank that fails, or whose process ends, ends the
 * communicator on all ranks, and makes kernels that wait leave once their process asks how they are
 * (xcclCommSynchronize, xcclCommGetAsyncError). */
typedef struct xcclExperts* xcclExperts_t;
xcclResult_t xcclCommLoadExperts(xcclComm_t comm, const char* plan);
xcclResult_t xcclExpertsCreate(xcclExperts_t* experts, xcclComm_t comm);
/* Calls that are queued still run. experts may be NULL. */
xcclResult_t xcclExpertsDestroy(xcclExperts_t experts);

/* What the plan is for. A rank receives at most ranks * maxTokens rows, and min(topK, localExperts) entries
 * for each. Rows of any size may be dispatched; those of rowBytes fill the plan's messages. */
typedef struct {
  int ranks, experts, localExperts, topK, maxTokens;
  size_t rowBytes;
} xcclExpertSizes_t;
xcclResult_t xcclExpertsGetSizes(xcclExperts_t experts, xcclExpertSizes_t* sizes);

typedef struct {
  size_t size;               /* of this struct: XCCL_DISPATCH_IN_INITIALIZER */
  const void* rows;          /* tokens * rowBytes */
  size_t rowBytes;           /* with scaleBytes a multiple of 16, equal on all ranks; 0: counts alone */
  const void* scales;        /* tokens * scaleBytes, which travel beside the rows */
  size_t scaleBytes;         /* 0: none */
  size_t tokens;             /* of this rank: 0 to maxTokens */
  const void* choices;       /* tokens * topK experts, each once in a token; -1: none */
  xcclDataType_t choiceType; /* xcclInt32 or xcclInt64 */
  const float* weights;      /* tokens * topK; NULL: all are 1 */
  int sameChoices;           /* on all ranks; 1: the handle's choices and weights are taken again */
} xcclDispatchIn_t;
#define XCCL_DISPATCH_IN_INITIALIZER \
  { sizeof(xcclDispatchIn_t), 0, 0, 0, 0, 0, 0, xcclInt64, 0, 0 }

/* Rows come in the order of (home rank, token), this rank's own among them. An entry is a row as the input of
 * one of its experts here; entries come by expert, then row. A NULL is not written. */
typedef struct {
  size_t size;          /* of this struct: XCCL_DISPATCH_OUT_INITIALIZER */
  void* rows;           /* maxRows * rowBytes; needed where rowBytes is not 0 */
  void* scales;         /* maxRows * scaleBytes, likewise */
  size_t maxRows;       /* more rows fail the call; 0 with counts alone */
  int* numRows;         /* 1 */
  int* rowsOfRank;      /* ranks: rows from each home */
  int* experts;         /* maxRows * topK: by row and position, the expert among those of this rank, or -1 */
  float* weights;       /* maxRows * topK; 0 where experts has -1 */
  int* homes;           /* maxRows: the rank that each row is from */
  int* tokens;          /* maxRows: its number there */
  int* rowsOfExpert;    /* localExperts: entries of each */
  int* firstOfExpert;   /* localExperts + 1: the first entry of each, then the number of entries */
  size_t maxEntries;    /* more entries fail the call where one of the next two is given */
  int* rowOfEntry;      /* maxEntries: its row */
  float* weightOfEntry; /* maxEntries */
} xcclDispatchOut_t;
#define XCCL_DISPATCH_OUT_INITIALIZER \
  { sizeof(xcclDispatchOut_t), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }
xcclResult_t xcclDispatch(const xcclDispatchIn_t* in, const xcclDispatchOut_t* out, xcclExperts_t experts,
                          xcclStream_t stream);

/* What a rank gives to combine: */
typedef enum {
  xcclWeightedEntries = 0, /* a row for each entry, which counts times its weight */
  xcclEntries = 1,         /* a row for each entry */
  xcclRows = 2             /* a row for each row received, such as the sum over its entries */
} xcclExpertRows_t;
/* Adds up in float what the experts of each token gave, and writes a row of `elements` elements to sums for
 * each token that this rank dispatched; zeros where it chose none. The order is fixed, so the same input
 * gives the same bits: a rank adds its own entries in the order of the token's positions, then the rows of
 * the ranks below it in ascending order, and rounds once (docs/dispatch.md). Type: xcclFloat32, xcclFloat16
 * or xcclBfloat16; sums of 8-bit floats are refused. */
xcclResult_t xcclCombine(const void* rows, void* sums, size_t elements, xcclDataType_t type,
                         xcclExpertRows_t of, xcclExperts_t experts, xcclStream_t stream);

xcclResult_t xcclGroupStart(void);
xcclResult_t xcclGroupEnd(void);

#ifdef __cplusplus
}
#endif

#endif /* XCCL_RUNTIME_XCCL_H_ */
