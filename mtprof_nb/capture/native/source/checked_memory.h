// Reads of this process's own memory that fail, and do not end the process, where nothing is mapped any more.
#pragma once

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#ifdef __APPLE__
#include <mach/mach.h>
#endif

namespace mtprof {

// Memory that cannot vanish: of objects to which a frame of the calling thread refers.
struct OwnMemory {
  bool read(const void* from, void* to, size_t size) const {
    std::memcpy(to, from, size);
    return true;
  }
};

// A part of memory, and where its copy goes.
struct Piece {
  const void* from;
  void* to;
  size_t size;
};

class CheckedMemory {
 public:
  enum Way { kNone, kReadv, kFile, kMach };

  // `first` is the way to try first: a system may refuse one of them.
  explicit CheckedMemory(Way first = kReadv) : process_(getpid()) {
    const uint64_t known = 0x6D7470726F66;
    uint64_t copy = 0;
#ifdef __APPLE__
    const Way last = kMach;
    first = kMach;
#else
    const Way last = kFile;
#endif
    for (int way = first; way <= last; ++way) {
      way_ = static_cast<Way>(way);
#ifdef __linux__
      file_ = way_ == kFile ? open("/proc/self/mem", O_RDONLY | O_CLOEXEC) : -1;
#endif
      if (read(&known, &copy, sizeof(copy)) && copy == known) {
        return;
      }
    }
    way_ = kNone;
  }

  ~CheckedMemory() {
    if (file_ >= 0) {
      close(file_);
    }
  }
  CheckedMemory(const CheckedMemory&) = delete;
  CheckedMemory& operator=(const CheckedMemory&) = delete;

  Way way() const {
    return way_;
  }

  bool read(const void* from, void* to, size_t size) {
    const Piece piece{from, to, size};
    return read(&piece, 1) == size;
  }

  // Copy the pieces in order, as far as they are mapped. Returns how many bytes.
  size_t read(const Piece* pieces, size_t count) {
#ifdef __linux__
    if (way_ == kReadv) {
      constexpr size_t kMost = 8;
      iovec local[kMost], remote[kMost];
      for (size_t number = 0; number < count; ++number) {
        local[number] = {pieces[number].to, pieces[number].size};
        remote[number] = {const_cast<void*>(pieces[number].from), pieces[number].size};
      }
      const ssize_t found = process_vm_readv(process_, local, count, remote, count, 0);
      return found < 0 ? 0 : static_cast<size_t>(found);
    }
#endif
    size_t whole = 0;
    for (size_t number = 0; number < count; ++number) {
      const size_t found = read_one(pieces[number]);
      whole += found;
      if (found < pieces[number].size) {
        break;
      }
    }
    return whole;
  }

 private:
  size_t read_one(const Piece& piece) {
#ifdef __APPLE__
    vm_size_t found = 0;
    const auto result = vm_read_overwrite(mach_task_self(), reinterpret_cast<vm_address_t>(piece.from), piece.size,
                                          reinterpret_cast<vm_address_t>(piece.to), &found);
    return way_ == kMach && result == KERN_SUCCESS ? static_cast<size_t>(found) : 0;
#else
    const ssize_t found = way_ != kFile ? -1 : pread(file_, piece.to, piece.size, reinterpret_cast<off_t>(piece.from));
    return found < 0 ? 0 : static_cast<size_t>(found);
#endif
  }

  pid_t process_;
  Way way_ = kNone;
  int file_ = -1;
};

}  // namespace mtprof
