#include "publish/zmq_library.h"

#include <string>

#include "base/shared_library.h"

namespace chasqui::publish {
namespace {

Error no_zmq(const std::string& what) {
  return {ErrorCode::not_supported, "--kv-events: " + what + ": install libzmq 4.2 or newer (Debian: libzmq5)", ""};
}

Result<ZmqLibrary> load_zmq() {
  SharedLibrary library({"libzmq.so.5"});
  ZmqLibrary out;
  library.find("zmq_ctx_new", out.ctx_new);
  library.find("zmq_ctx_term", out.ctx_term);
  library.find("zmq_socket", out.socket);
  library.find("zmq_close", out.close);
  library.find("zmq_bind", out.bind);
  library.find("zmq_connect", out.connect);
  library.find("zmq_setsockopt", out.setsockopt);
  library.find("zmq_getsockopt", out.getsockopt);
  library.find("zmq_poll", out.poll);
  library.find("zmq_errno", out.last_error);
  library.find("zmq_strerror", out.text_of);
  library.find("zmq_send", out.send);
  library.find("zmq_msg_init", out.message_init);
  library.find("zmq_msg_recv", out.message_receive);
  library.find("zmq_msg_close", out.message_close);
  library.find("zmq_msg_data", out.message_data);
  library.find("zmq_msg_size", out.message_size);
  if (!library.serves()) return no_zmq(library.fault("ZeroMQ"));
  return out;
}

}  // namespace

Result<const ZmqLibrary*> zmq_library() { return loaded_once(load_zmq); }

}  // namespace chasqui::publish
