#include "base/shared_library.h"

#include <dlfcn.h>

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
  if (handle_ == nullptr) return nullptr;
  void* const out = ::dlsym(handle_, name);
  if (out == nullptr && missing_.empty()) missing_ = name;
  return out;
}

std::string SharedLibrary::fault(std::string_view library) const {
  const std::string name(library);
  if (!loaded()) return "there is no " + name + " on this machine (" + why_ + ')';
  return "the " + name + " of this machine is too old, it has no " + missing_;
}

}  // namespace chasqui
