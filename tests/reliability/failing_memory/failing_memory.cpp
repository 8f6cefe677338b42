// Memory that ends, for tests: stands in the place of C++'s `operator new`, and lets allocations of one library fail,
// those of Python's memory that the library asks for included. It is loaded before all libraries (LD_PRELOAD).
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <execinfo.h>
#include <link.h>

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>

namespace {

std::atomic<bool> is_armed{false};
std::atomic<long> seen{0}, first{0}, last{0};
uintptr_t begins = 0, ends = 0;
thread_local bool is_looking = false;

// How many callers are looked at: those in the C++ library, between the allocation and the library, are few.
constexpr int kCallers = 10;

bool is_called_by_library() {
  void* callers[kCallers];
  is_looking = true;
  const int count = backtrace(callers, kCallers);
  is_looking = false;
  for (int at = 0; at < count; ++at) {
    const auto address = reinterpret_cast<uintptr_t>(callers[at]);
    if (address >= begins && address < ends) {
      return true;
    }
  }
  return false;
}

bool fails() {
  if (!is_armed.load() || is_looking || !is_called_by_library()) {
    return false;
  }
  const long number = ++seen;
  return number >= first.load() && number <= last.load();
}

void* allocated(size_t size, size_t alignment) {
  void* found = nullptr;
  return fails() || posix_memalign(&found, alignment, size) != 0 ? nullptr : found;
}

void* made(size_t size, size_t alignment = alignof(std::max_align_t)) {
  void* found = allocated(size, alignment);
  if (found == nullptr) {
    throw std::bad_alloc();
  }
  return found;
}

constexpr PyMemAllocatorDomain kDomains[] = {PYMEM_DOMAIN_RAW, PYMEM_DOMAIN_MEM, PYMEM_DOMAIN_OBJ};
PyMemAllocatorEx before[3];

const PyMemAllocatorEx& of(void* context) {
  return *static_cast<PyMemAllocatorEx*>(context);
}

void* python_malloc(void* context, size_t size) {
  return fails() ? nullptr : of(context).malloc(of(context).ctx, size);
}

void* python_calloc(void* context, size_t count, size_t size) {
  return fails() ? nullptr : of(context).calloc(of(context).ctx, count, size);
}

void* python_realloc(void* context, void* block, size_t size) {
  return fails() ? nullptr : of(context).realloc(of(context).ctx, block, size);
}

void python_free(void* context, void* block) {
  of(context).free(of(context).ctx, block);
}

int find_library(dl_phdr_info* library, size_t, void* name) {
  if (std::strcmp(library->dlpi_name, static_cast<const char*>(name)) != 0) {
    return 0;
  }
  begins = library->dlpi_addr;
  for (int at = 0; at < library->dlpi_phnum; ++at) {
    const auto& part = library->dlpi_phdr[at];
    if (part.p_type == PT_LOAD) {
      ends = library->dlpi_addr + part.p_vaddr + part.p_memsz;
    }
  }
  return 1;
}

}  // namespace

void* operator new(size_t size) {
  return made(size);
}
void* operator new[](size_t size) {
  return made(size);
}
void* operator new(size_t size, std::align_val_t alignment) {
  return made(size, static_cast<size_t>(alignment));
}
void* operator new[](size_t size, std::align_val_t alignment) {
  return made(size, static_cast<size_t>(alignment));
}
void* operator new(size_t size, const std::nothrow_t&) noexcept {
  return allocated(size, alignof(std::max_align_t));
}
void* operator new[](size_t size, const std::nothrow_t&) noexcept {
  return allocated(size, alignof(std::max_align_t));
}

extern "C" {

// Watch the library in the file `name`. Returns whether it is loaded.
int watch(const char* name) {
  void* caller[1];
  backtrace(caller, 1);  // the first call asks for memory
  for (int at = 0; at < 3; ++at) {
    PyMem_GetAllocator(kDomains[at], &before[at]);
    PyMemAllocatorEx own = {&before[at], python_malloc, python_calloc, python_realloc, python_free};
    PyMem_SetAllocator(kDomains[at], &own);
  }
  return dl_iterate_phdr(find_library, const_cast<char*>(name));
}

// The allocations of the library from number `from` to `to` fail until `disarm`, which returns how many there were.
void arm(long from, long to) {
  seen = 0;
  first = from;
  last = to;
  is_armed = true;
}

long disarm() {
  is_armed = false;
  return seen;
}
}
