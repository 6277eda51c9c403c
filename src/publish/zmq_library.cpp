#include "publish/zmq_library.h"

#include <string>

#include <dlfcn.h>

namespace chasqui::publish {
namespace {

Error no_zmq(const std::string& what) {
  return {ErrorCode::not_supported, "--kv-events: " + what + ": install libzmq 4.2 or newer (Debian: libzmq5)", ""};
}

template <class Function>
bool find_symbol(void* library, const char* name, Function& out) {
  out = reinterpret_cast<Function>(::dlsym(library, name));
  return out != nullptr;
}

Result<ZmqLibrary> load_zmq() {
  void* const library = ::dlopen("libzmq.so.5", RTLD_NOW | RTLD_LOCAL);  // stays loaded: it has threads
  if (library == nullptr) return no_zmq("there is no ZeroMQ on this machine");
  ZmqLibrary out;
  const bool complete =
      find_symbol(library, "zmq_ctx_new", out.ctx_new) && find_symbol(library, "zmq_ctx_term", out.ctx_term) &&
      find_symbol(library, "zmq_socket", out.socket) && find_symbol(library, "zmq_close", out.close) &&
      find_symbol(library, "zmq_bind", out.bind) && find_symbol(library, "zmq_connect", out.connect) &&
      find_symbol(library, "zmq_setsockopt", out.setsockopt) &&
      find_symbol(library, "zmq_getsockopt", out.getsockopt) && find_symbol(library, "zmq_poll", out.poll) &&
      find_symbol(library, "zmq_errno", out.last_error) && find_symbol(library, "zmq_strerror", out.text_of) &&
      find_symbol(library, "zmq_send", out.send) && find_symbol(library, "zmq_msg_init", out.message_init) &&
      find_symbol(library, "zmq_msg_recv", out.message_receive) &&
      find_symbol(library, "zmq_msg_close", out.message_close) &&
      find_symbol(library, "zmq_msg_data", out.message_data) && find_symbol(library, "zmq_msg_size", out.message_size);
  if (!complete) return no_zmq("the ZeroMQ of this machine is too old");
  return out;
}

}  // namespace

Result<const ZmqLibrary*> zmq_library() {
  static const Result<ZmqLibrary> library = load_zmq();
  if (!library) return library.error();
  return &library.value();
}

}  // namespace chasqui::publish
