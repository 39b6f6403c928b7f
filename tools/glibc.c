// Functions of newer C libraries for programs that are made portable to glibc 2.31 (tools/portable.py). Programs that were linked
// with glibc 2.34 or later leave their constructors to the C library, which older ones do not run.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

// glibc 2.32: whether there is one thread only. 0 is always right.
char __libc_single_threaded = 0;

// glibc 2.33: stat and its like were macros before.
struct stat;
extern int __fxstatat(int version, int fd, const char* path, struct stat* found, int flags);
enum { kStatVersion = 1 };  // of x86-64
int stat(const char* path, struct stat* found) {
  return __fxstatat(kStatVersion, AT_FDCWD, path, found, 0);
}
int lstat(const char* path, struct stat* found) {
  return __fxstatat(kStatVersion, AT_FDCWD, path, found, AT_SYMLINK_NOFOLLOW);
}
int fstat(int fd, struct stat* found) { return __fxstatat(kStatVersion, fd, "", found, AT_EMPTY_PATH); }
int fstat64(int fd, struct stat* found) { return fstat(fd, found); }

// glibc 2.34: the constructors of a program, which glibc runs by itself where `init` is null.
typedef void (*Constructor)(int, char**, char**);
struct Program {
  uintptr_t base;
  const ElfW(Dyn) * dynamic;
};
static int FindProgram(struct dl_phdr_info* info, size_t size, void* found) {
  (void)size;
  struct Program* program = found;
  for (int i = 0; i < info->dlpi_phnum; ++i)
    if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
      program->dynamic = (const void*)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
  program->base = info->dlpi_addr;
  return 1;  // the program comes first
}
static void RunConstructors(int argc, char** argv, char** environment) {
  struct Program program = {0};
  dl_iterate_phdr(FindProgram, &program);
  Constructor* array = NULL;
  size_t count = 0;
  for (const ElfW(Dyn)* entry = program.dynamic; entry != NULL && entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag == DT_INIT) ((Constructor)(program.base + entry->d_un.d_ptr))(argc, argv, environment);
    if (entry->d_tag == DT_INIT_ARRAY) array = (Constructor*)(program.base + entry->d_un.d_ptr);
    if (entry->d_tag == DT_INIT_ARRAYSZ) count = entry->d_un.d_val / sizeof(Constructor);
  }
  for (size_t i = 0; i < count; ++i) array[i](argc, argv, environment);
}
typedef int (*Start)(int (*)(int, char**, char**), int, char**, Constructor, void (*)(void), void (*)(void), void*);
int __libc_start_main(int (*main)(int, char**, char**), int argc, char** argv, Constructor init,
                      void (*fini)(void), void (*loader_fini)(void), void* stack_end) {
  const Start start = (Start)dlsym(RTLD_NEXT, "__libc_start_main");
  return start(main, argc, argv, init != NULL ? init : RunConstructors, fini, loader_fini, stack_end);
}

// glibc 2.35: where the tables are that exceptions are thrown by. As <dlfcn.h> declares it.
struct Sought {
  uintptr_t address;
  struct dl_find_object* found;
};
static int Holds(struct dl_phdr_info* info, size_t size, void* data) {
  (void)size;
  const struct Sought* sought = data;
  uintptr_t first = UINTPTR_MAX, last = 0, tables = 0;
  int holds = 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)* part = &info->dlpi_phdr[i];
    const uintptr_t begin = info->dlpi_addr + part->p_vaddr, end = begin + part->p_memsz;
    if (part->p_type == PT_GNU_EH_FRAME) tables = begin;
    if (part->p_type != PT_LOAD) continue;
    holds |= begin <= sought->address && sought->address < end;
    if (begin < first) first = begin;
    if (end > last) last = end;
  }
  if (!holds || tables == 0) return 0;
  memset(sought->found, 0, sizeof *sought->found);
  sought->found->dlfo_map_start = (void*)first;
  sought->found->dlfo_map_end = (void*)last;
  sought->found->dlfo_eh_frame = (void*)tables;
  return 1;
}
int _dl_find_object(void* address, struct dl_find_object* found) {
  struct Sought sought = {(uintptr_t)address, found};
  return dl_iterate_phdr(Holds, &sought) == 1 ? 0 : -1;
}

// glibc 2.36.
uint32_t arc4random(void) {
  uint32_t value = 0;
  while (syscall(SYS_getrandom, &value, sizeof value, 0) != sizeof value) {
  }
  return value;
}
