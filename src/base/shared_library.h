// A shared library of the machine that is loaded when it is used, so that the binary starts where it is not installed.
// Its functions are declared by the file that opens it (a table of pointers), as the library's ABI has them.
//
//   SharedLibrary library({"libparcel.so.2"});
//   if (!library.loaded()) return error("there is no libparcel on this machine");
//   library.find("parcel_send", out.send);
//   if (!library.missing().empty()) return error("the libparcel of this machine has no " + library.missing());
//
// Stays loaded until the process ends: it may have threads, or have registered what others hold. A value of the thread
// that opens it.
#pragma once

#include <initializer_list>
#include <string>

namespace chasqui {

class SharedLibrary {
 public:
  // The first of these that the system's loader finds; a name with a slash is a path.
  explicit SharedLibrary(std::initializer_list<const char*> names);

  bool loaded() const { return handle_ != nullptr; }
  // What the loader says of the first name; empty where it is loaded.
  const std::string& why() const { return why_; }

  // Null where there is no such function, which missing() then names unless it names another one already.
  // REQUIRES: loaded()
  template <class Function>
  void find(const char* name, Function*& out) {
    out = reinterpret_cast<Function*>(address_of(name));
  }
  const std::string& missing() const { return missing_; }

 private:
  void* address_of(const char* name);

  void* handle_ = nullptr;
  std::string why_;
  std::string missing_;
};

}  // namespace chasqui
