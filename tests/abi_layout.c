/* Prints what programs of xccl.h have compiled into them: sizes, offsets and numbers. */
#include <stddef.h>
#include <stdio.h>

#include "runtime/xccl.h"

#define SIZE(type) printf("sizeof %s %lu\n", #type, (unsigned long)sizeof(type))
#define FIELD(type, field)                                                                \
  printf("%s.%s at %lu, %lu bytes\n", #type, #field, (unsigned long)offsetof(type, field), \
         (unsigned long)sizeof(((type*)NULL)->field))
#define VALUE(name) printf("%s = %ld\n", #name, (long)(name))

int main(void) {
  SIZE(xcclComm_t);
  SIZE(xcclStream_t);
  SIZE(xcclUniqueId);
  FIELD(xcclUniqueId, internal);
  SIZE(xcclConfig_t);
  FIELD(xcclConfig_t, size);
  FIELD(xcclConfig_t, magic);
  FIELD(xcclConfig_t, version);
  FIELD(xcclConfig_t, blocking);
  FIELD(xcclConfig_t, device);
  FIELD(xcclConfig_t, maxCTAs);
  FIELD(xcclConfig_t, memoryBytes);
  FIELD(xcclConfig_t, timeLimit);
  SIZE(xcclResult_t);
  VALUE(xcclSuccess);
  VALUE(xcclUnhandledCudaError);
  VALUE(xcclSystemError);
  VALUE(xcclInternalError);
  VALUE(xcclInvalidArgument);
  VALUE(xcclInvalidUsage);
  VALUE(xcclRemoteError);
  VALUE(xcclInProgress);
  SIZE(xcclDataType_t);
  VALUE(xcclInt8);
  VALUE(xcclChar);
  VALUE(xcclUint8);
  VALUE(xcclInt32);
  VALUE(xcclInt);
  VALUE(xcclUint32);
  VALUE(xcclInt64);
  VALUE(xcclUint64);
  VALUE(xcclFloat16);
  VALUE(xcclHalf);
  VALUE(xcclFloat32);
  VALUE(xcclFloat);
  VALUE(xcclFloat64);
  VALUE(xcclDouble);
  VALUE(xcclBfloat16);
  VALUE(xcclFloat8e4m3);
  VALUE(xcclFloat8e5m2);
  VALUE(xcclNumTypes);
  SIZE(xcclRedOp_t);
  VALUE(xcclSum);
  VALUE(xcclProd);
  VALUE(xcclMax);
  VALUE(xcclMin);
  VALUE(xcclAvg);
  VALUE(xcclNumOps);
  VALUE(xcclMaxRedOp);
  SIZE(xcclScalarResidence_t);
  VALUE(xcclScalarDevice);
  VALUE(xcclScalarHostImmediate);
  VALUE(XCCL_SPLIT_NOCOLOR);
  VALUE(XCCL_SHRINK_DEFAULT);
  VALUE(XCCL_SHRINK_ABORT);
  VALUE(XCCL_UNIQUE_ID_BYTES);
  VALUE(XCCL_CONFIG_MAGIC);
  VALUE(XCCL_CONFIG_UNDEF_INT);
  SIZE(xcclExperts_t);
  SIZE(xcclExpertSizes_t);
  FIELD(xcclExpertSizes_t, ranks);
  FIELD(xcclExpertSizes_t, experts);
  FIELD(xcclExpertSizes_t, localExperts);
  FIELD(xcclExpertSizes_t, topK);
  FIELD(xcclExpertSizes_t, maxTokens);
  FIELD(xcclExpertSizes_t, rowBytes);
  SIZE(xcclDispatchIn_t);
  FIELD(xcclDispatchIn_t, size);
  FIELD(xcclDispatchIn_t, rows);
  FIELD(xcclDispatchIn_t, rowBytes);
  FIELD(xcclDispatchIn_t, scales);
  FIELD(xcclDispatchIn_t, scaleBytes);
  FIELD(xcclDispatchIn_t, tokens);
  FIELD(xcclDispatchIn_t, choices);
  FIELD(xcclDispatchIn_t, choiceType);
  FIELD(xcclDispatchIn_t, weights);
  FIELD(xcclDispatchIn_t, sameChoices);
  SIZE(xcclDispatchOut_t);
  FIELD(xcclDispatchOut_t, size);
  FIELD(xcclDispatchOut_t, rows);
  FIELD(xcclDispatchOut_t, scales);
  FIELD(xcclDispatchOut_t, maxRows);
  FIELD(xcclDispatchOut_t, numRows);
  FIELD(xcclDispatchOut_t, rowsOfRank);
  FIELD(xcclDispatchOut_t, experts);
  FIELD(xcclDispatchOut_t, weights);
  FIELD(xcclDispatchOut_t, homes);
  FIELD(xcclDispatchOut_t, tokens);
  FIELD(xcclDispatchOut_t, rowsOfExpert);
  FIELD(xcclDispatchOut_t, firstOfExpert);
  FIELD(xcclDispatchOut_t, maxEntries);
  FIELD(xcclDispatchOut_t, rowOfEntry);
  FIELD(xcclDispatchOut_t, weightOfEntry);
  SIZE(xcclExpertRows_t);
  VALUE(xcclWeightedEntries);
  VALUE(xcclEntries);
  VALUE(xcclRows);
  return 0;
}
