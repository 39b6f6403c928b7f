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
  return 0;
}
