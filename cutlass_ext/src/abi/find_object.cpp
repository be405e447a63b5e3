// SPDX-License-Identifier: Apache-2.0
// Lets the library load where libc is older than 2.35. The unwinder of newer compilers, which is linked into the
// library, finds the code that an exception passes by libc's _dl_find_object, which is that new; it would be the only
// thing that the library needs of such a libc. The linker takes the function below instead. It asks libc's at run time
// where that is there: unlike dl_iterate_phdr it takes no lock, which a fork could copy while it is held.
#include <dlfcn.h>
#include <link.h>

#include <cstdint>

namespace {

// struct dl_find_object of libc's <dlfcn.h> on x86-64.
struct FoundObject {
  unsigned long long flags;
  void *map_start, *map_end;
  link_map* map;
  void* eh_frame;  // the section .eh_frame_hdr
  unsigned long long reserved[7];
};
static_assert(sizeof(FoundObject) == 96, "the layout is libc's");

using FindObject = int(void* address, FoundObject* out);

const auto find_by_libc = reinterpret_cast<FindObject*>(dlsym(RTLD_DEFAULT, "_dl_find_object"));

struct Search {
  uintptr_t address;
  FoundObject* out;
};

// Ends the search in the object that the address is in: with 1 where an exception can pass through it.
int visit(dl_phdr_info* object, size_t, void* data) {
  const Search& search = *static_cast<Search*>(data);
  const ElfW(Phdr)* inside = nullptr, *eh_frame = nullptr;
  uintptr_t first = UINTPTR_MAX, last = 0;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = object->dlpi_phdr[i];
    if (header.p_type == PT_GNU_EH_FRAME) eh_frame = &header;
    if (header.p_type != PT_LOAD) continue;
    const uintptr_t begin = object->dlpi_addr + header.p_vaddr, end = begin + header.p_memsz;
    if (search.address >= begin && search.address < end) inside = &header;
    if (begin < first) first = begin;
    if (end > last) last = end;
  }
  if (inside == nullptr) return 0;
  if (eh_frame == nullptr) return -1;
  *search.out = {};
  search.out->map_start = reinterpret_cast<void*>(first);
  search.out->map_end = reinterpret_cast<void*>(last);
  search.out->eh_frame = reinterpret_cast<void*>(object->dlpi_addr + eh_frame->p_vaddr);
  return 1;
}

}  // namespace

// By its name in the object file, since <dlfcn.h> may declare it.
extern "C" __attribute__((visibility("hidden"))) int sparsek_find_object(void* address,
                                                                         FoundObject* out) asm("_dl_find_object");

// 0: found, and *out is filled in, but for the map.
int sparsek_find_object(void* address, FoundObject* out) {
  if (find_by_libc != nullptr) return find_by_libc(address, out);
  Search search{reinterpret_cast<uintptr_t>(address), out};
  return dl_iterate_phdr(visit, &search) == 1 ? 0 : -1;
}
