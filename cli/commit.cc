// The commit that a stamped build (--stamp, as --config=release has it) was made of; compiled when the
// program is linked. tools/workspace_status says which.
extern const char kCommit[];
#ifdef STABLE_XCCL_COMMIT
extern const char kCommit[] = STABLE_XCCL_COMMIT;
#else
extern const char kCommit[] = "";
#endif
