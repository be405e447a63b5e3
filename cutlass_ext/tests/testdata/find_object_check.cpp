// SPDX-License-Identifier: Apache-2.0
// How the library finds the code that exceptions pass where libc does not offer that, beside libc's own answers.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>

namespace {
void* finds_nothing(void*, const char*) { return nullptr; }
}  // namespace

#define dlsym finds_nothing
#include "abi/find_object.cpp"
#undef dlsym

namespace {

int calls = 0;

void require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "%s\n", what);
  std::exit(1);
}

void compare(FindObject* libc, void* address, const char* what) {
  FoundObject ours, theirs;
  std::memset(&ours, 0xff, sizeof(ours));
  std::memset(&theirs, 0xff, sizeof(theirs));
  const int status = sparsek_find_object(address, &ours);
  require(status == libc(address, &theirs), what);
  if (status != 0) return;
  require(ours.map_start == theirs.map_start && ours.map_end == theirs.map_end && ours.eh_frame == theirs.eh_frame,
          what);
}

int compare_strings(const void* a, const void* b) {
  if (++calls == 3) throw std::runtime_error("within libc");
  return std::strcmp(static_cast<const char*>(a), static_cast<const char*>(b));
}

}  // namespace

int main() {
  require(find_by_libc == nullptr, "libc was asked");
  for (int i = 0; i < 3; ++i) {
    try {
      throw std::out_of_range("here");
    } catch (const std::logic_error& error) {
      require(error.what() == std::string("here"), "another exception");
    }
  }
  try {  // through the frames of another library
    char words[8][2] = {"d", "c", "h", "a", "b", "g", "f", "e"};
    std::qsort(words, 8, 2, compare_strings);
    require(false, "no exception");
  } catch (const std::runtime_error&) {
  }
  auto* const libc = reinterpret_cast<FindObject*>(dlsym(RTLD_DEFAULT, "_dl_find_object"));
  if (libc == nullptr) return 0;
  int local = 0;
  compare(libc, reinterpret_cast<void*>(&compare_strings), "the program");
  compare(libc, reinterpret_cast<void*>(&std::qsort), "libc");
  compare(libc, dlsym(RTLD_DEFAULT, "dlopen"), "the loader's library");
  compare(libc, &local, "the stack");
  compare(libc, nullptr, "null");
}
