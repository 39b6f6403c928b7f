/* A step of a mixture-of-experts layer in C, forward and backward, which checks every number. */
#ifndef XCCL_RUNTIME_C_API_TESTING_MOE_STEP_H_
#define XCCL_RUNTIME_C_API_TESTING_MOE_STEP_H_

#include "runtime/xccl.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Runs two steps of one rank. The plan is for 4 ranks, 8 experts, top-2 and at least 6 tokens. Rank 2 has no
 * tokens, and some choices are -1. 0, or the number of the line that saw something wrong, which it prints. */
int RunMoeStep(xcclComm_t comm, const char* plan);

#ifdef __cplusplus
}
#endif

#endif /* XCCL_RUNTIME_C_API_TESTING_MOE_STEP_H_ */
