// A shared library of the machine that is loaded when it is used, so that the binary starts where it is not installed.
// Its functions are declared by the file that opens it (a table of pointers), as the library's ABI has them.
//
//   Result<Parcel> load_parcel() {
//     SharedLibrary library({"libparcel.so.2"});
//     Parcel out;
//     library.find("parcel_send", out.send);
//     if (!library.serves()) return error(library.fault("libparcel") + ": install libparcel 2");
//     return out;
//   }
//   Result<const Parcel*> parcel() { return loaded_once(load_parcel); }
//
// Stays loaded until the process ends: it may have threads, or have registered what others hold. A value of the thread
// that opens it.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "base/error.h"

namespace chasqui {

class SharedLibrary {
 public:
  // The first of these that the system's loader finds; a name with a slash is a path.
  explicit SharedLibrary(std::initializer_list<const char*> names);

  bool loaded() const { return handle_ != nullptr; }
  // What the loader says of the first name; empty where it is loaded.
  const std::string& why() const { return why_; }

  // Null where there is no such function, which missing() then names unless it names another one already, or no
  // library.
  template <class Function>
  void find(const char* name, Function*& out) {
    out = reinterpret_cast<Function*>(address_of(name));
  }
  const std::string& missing() const { return missing_; }

  // It is loaded, and has all that was looked for …
  bool serves() const { return loaded() && missing_.empty(); }
  // … or why not, for users. `library`: as they call it.
  std::string fault(std::string_view library) const;

 private:
  void* address_of(const char* name);

  void* handle_ = nullptr;
  std::string why_;
  std::string missing_;
};

// What the first caller has loaded, or its error, for the whole process: of each type of table once. Any thread.
template <class Table>
Result<const Table*> loaded_once(Result<Table> (*load)()) {
  static const Result<Table> library = load();
  if (!library) return library.error();
  return &library.value();
}

}  // namespace chasqui
