#include "base/shared_library.h"

#include <dlfcn.h>

#include "base/error.h"

namespace chasqui {

SharedLibrary::SharedLibrary(std::initializer_list<const char*> names) {
  for (const char* const name : names) {
    handle_ = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (handle_ != nullptr) break;
    const char* const text = ::dlerror();
    if (why_.empty() && text != nullptr) why_ = text;
  }
  if (handle_ != nullptr) why_.clear();
}

void* SharedLibrary::address_of(const char* name) {
  CHECK(handle_ != nullptr, "a library that is not loaded has no functions");
  void* const out = ::dlsym(handle_, name);
  if (out == nullptr && missing_.empty()) missing_ = name;
  return out;
}

}  // namespace chasqui
