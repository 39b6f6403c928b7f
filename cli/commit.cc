// The commit that a stamped build (--stamp, as --config=release has it) was made of; compiled when the
// program is linked. tools/workspace_status says which. Bazel gives a linkstamp only keys that it knows
// itself, of which BUILD_SCM_REVISION is one; "0" where nobody said.
extern const char kCommit[];
#ifdef BUILD_SCM_REVISION
extern const char kCommit[] = BUILD_SCM_REVISION;
#else
extern const char kCommit[] = "";
#endif
