// SPDX-License-Identifier: Apache-2.0
// Opens libraries from folders below the first argument, as the test has made them. Prints the first wrong answer and
// exits with 1.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "abi/error.h"
#include "cuda/runtime_library.h"

namespace {

using sparsek::cuda::open_library;
using sparsek::cuda::OpenedLibrary;

constexpr const char* kVariable = "SPARSEK_PROBE";
constexpr sparsek::cuda::LibraryFile kProbe = {"Probe", kVariable, "libprobe.so", "libbeside.so", "probe/lib"};

struct Case {
  const char* given;  // below the folder
  int which;          // what the library that is opened answers; 0: none is
  const char* why;    // then, a part of the message
};

const Case kCases[] = {
    {"new/libprobe.so.13", 13, ""},
    {"new", 13, ""},      // of 13 and 12
    {"plain", 1, ""},     // without a version
    {"nvidia", 14, ""},   // in cu13/lib
    {"old", 12, ""},      // in probe/lib
    {"needing", 15, ""},  // needs what is beside it, which the loader does not find
    {"nowhere", 0, "nowhere"},
    {"empty", 0, "no libprobe.so in it, nor in cu13/lib or probe/lib"},
    {"garbage", 0, "libprobe.so.12"},
    {"garbage/libprobe.so.12", 0, "libprobe.so.12"},
};

bool right(const OpenedLibrary& opened, const Case& c) {
  if (c.which == 0) {
    return opened.handle == nullptr && opened.why_not.find(c.why) != std::string::npos &&
           opened.why_not.find(kVariable) != std::string::npos;
  }
  if (opened.handle == nullptr || !opened.why_not.empty()) return false;
  int (*which)() = nullptr;
  sparsek::cuda::find_function(opened, "Probe", "which", which);
  return which() == c.which;
}

// The error of a function that is not to be had.
bool refuses(const OpenedLibrary& opened, const char* why) {
  try {
    sparsek::cuda::find_function(opened, "Probe", "nothing_of_that_name");
  } catch (const sparsek::Error& error) {
    return error.status() == SPARSEK_NO_LIBRARY && std::string(error.what()).find(why) != std::string::npos;
  }
  return false;
}

}  // namespace

int main(int, char** argv) {
  for (const Case& c : kCases) {
    setenv(kVariable, (std::string(argv[1]) + "/" + c.given).c_str(), 1);
    const OpenedLibrary opened = open_library(kProbe);
    if (!right(opened, c)) {
      std::printf("%s: %s, \"%s\"\n", c.given, opened.handle == nullptr ? "not opened" : "opened",
                  opened.why_not.c_str());
      return 1;
    }
    if (!refuses(opened, c.which == 0 ? c.why : "too old")) {
      std::printf("%s: a function that is not there is not refused as it should be\n", c.given);
      return 1;
    }
  }
  for (const char* const unset : {"", static_cast<const char*>(nullptr)}) {
    unset == nullptr ? unsetenv(kVariable) : setenv(kVariable, unset, 1);
    const OpenedLibrary opened = open_library(kProbe);
    if (opened.handle != nullptr || opened.why_not.find("set SPARSEK_PROBE to its folder") == std::string::npos) {
      std::printf("the loader's: \"%s\"\n", opened.why_not.c_str());
      return 1;
    }
  }
  // The result of opening one is final.
  setenv("SPARSEK_CUSPARSE", (std::string(argv[1]) + "/empty").c_str(), 1);
  const OpenedLibrary& first = sparsek::cuda::cusparse_file();
  setenv("SPARSEK_CUSPARSE", (std::string(argv[1]) + "/new/libprobe.so.13").c_str(), 1);
  if (first.handle != nullptr || &sparsek::cuda::cusparse_file() != &first) {
    std::printf("cuSPARSE was opened again\n");
    return 1;
  }
}
