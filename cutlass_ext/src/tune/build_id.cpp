// SPDX-License-Identifier: Apache-2.0
#include "tune/build_id.h"

#include <elf.h>
#include <link.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "abi/entry.h"
#include "abi/made_once.h"

namespace sparsek::tune {
namespace {

constexpr size_t kDigits = 16;

struct Search {
  uintptr_t inside;  // an address in the object to find
  std::string id;
};

bool contains(const dl_phdr_info& object, uintptr_t address) {
  return std::any_of(object.dlpi_phdr, object.dlpi_phdr + object.dlpi_phnum, [&](const ElfW(Phdr) & segment) {
    return segment.p_type == PT_LOAD && address - (object.dlpi_addr + segment.p_vaddr) < segment.p_memsz;
  });
}

size_t aligned(size_t size) { return (size + 3) & ~size_t{3}; }

std::string hexadecimal(const unsigned char* bytes, size_t count) {
  std::string text;
  for (size_t i = 0; i < count && text.size() < kDigits; ++i) {
    text += "0123456789abcdef"[bytes[i] >> 4];
    text += "0123456789abcdef"[bytes[i] & 15];
  }
  return text;
}

// The build id in a segment of notes, or "". A note is a header, a name and a description, each padded to 4 bytes.
std::string find_note(const unsigned char* at, size_t left) {
  constexpr char kOwner[] = "GNU";
  ElfW(Nhdr) note;
  while (left >= sizeof(note)) {
    std::memcpy(&note, at, sizeof(note));
    const size_t name = aligned(note.n_namesz), size = sizeof(note) + name + aligned(note.n_descsz);
    if (size > left) return "";
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof(kOwner) &&
        std::memcmp(at + sizeof(note), kOwner, sizeof(kOwner)) == 0) {
      return hexadecimal(at + sizeof(note) + name, note.n_descsz);
    }
    at += size;
    left -= size;
  }
  return "";
}

int visit(dl_phdr_info* object, size_t, void* data) {
  Search& search = *static_cast<Search*>(data);
  if (!contains(*object, search.inside)) return 0;
  for (int i = 0; i < object->dlpi_phnum && search.id.empty(); ++i) {
    const ElfW(Phdr)& segment = object->dlpi_phdr[i];
    if (segment.p_type != PT_NOTE || segment.p_align > 4) continue;  // notes aligned to 8 have another format
    search.id = find_note(reinterpret_cast<const unsigned char*>(object->dlpi_addr + segment.p_vaddr), segment.p_memsz);
  }
  return 1;
}

std::string find_build() {
  Search search{reinterpret_cast<uintptr_t>(&library_build), ""};
  dl_iterate_phdr(visit, &search);
  if (search.id.size() == kDigits) return search.id;
  sparsek_build_info info{};
  info.abi_size = sizeof(info);
  entry::build_info(&info);
  return std::string(info.version) + "+" + info.commit;
}

std::atomic<const std::string*> build{nullptr};  // never destroyed: threads may outlive main

}  // namespace

const std::string& library_build() {
  return made_once(build, [] { return std::make_unique<const std::string>(find_build()); });
}

}  // namespace sparsek::tune
