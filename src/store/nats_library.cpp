#include "store/nats_library.h"

#include <cstdint>
#include <string>

#include "base/shared_library.h"

namespace chasqui::store {
namespace {

// Structures of its header are passed to it, and have grown in later versions: only the minor version fits that this
// was compiled with, and its name says which that is.
#define CHASQUI_TEXT_OF(number) #number
#define CHASQUI_NATS_NAME(major, minor) "libnats.so." CHASQUI_TEXT_OF(major) "." CHASQUI_TEXT_OF(minor)
constexpr const char* kNatsName = CHASQUI_NATS_NAME(NATS_VERSION_MAJOR, NATS_VERSION_MINOR);
#undef CHASQUI_NATS_NAME
#undef CHASQUI_TEXT_OF
constexpr unsigned kNatsMinor = NATS_VERSION_NUMBER >> 8;

Error no_nats(const std::string& what) {
  return {
      ErrorCode::not_supported,
      what + ": install nats.c " + std::string(kNatsName).substr(sizeof "libnats.so." - 1) + " (Debian 12: libnats3.4)",
      ""};
}

Result<NatsLibrary> load_nats() {
  SharedLibrary library({kNatsName});
  NatsLibrary out;
  library.find("nats_GetVersion", out.get_version);
  library.find("nats_GetVersionNumber", out.get_version_number);
  library.find("natsStatus_GetText", out.status_text);
  library.find("natsOptions_Create", out.options_create);
  library.find("natsOptions_Destroy", out.options_destroy);
  library.find("natsOptions_SetURL", out.set_url);
  library.find("natsOptions_SetUserInfo", out.set_user_info);
  library.find("natsOptions_SetTimeout", out.set_timeout);
  library.find("natsOptions_SetName", out.set_name);
  library.find("natsOptions_SetAllowReconnect", out.set_allow_reconnect);
  library.find("natsConnection_Connect", out.connect);
  library.find("natsConnection_Destroy", out.connection_destroy);
  library.find("natsConnection_IsClosed", out.is_closed);
  library.find("natsConnection_FlushTimeout", out.flush);
  library.find("natsConnection_GetMaxPayload", out.max_payload);
  library.find("natsConnection_Publish", out.publish);
  library.find("natsConnection_SubscribeSync", out.subscribe);
  library.find("natsConnection_JetStream", out.jetstream);
  library.find("jsCtx_Destroy", out.jetstream_destroy);
  library.find("jsOptions_Init", out.js_options_init);
  library.find("jsPubOptions_Init", out.pub_options_init);
  library.find("jsSubOptions_Init", out.sub_options_init);
  library.find("jsStreamConfig_Init", out.stream_config_init);
  library.find("jsConsumerConfig_Init", out.consumer_config_init);
  library.find("js_AddStream", out.add_stream);
  library.find("js_GetStreamInfo", out.stream_info);
  library.find("jsStreamInfo_Destroy", out.stream_info_destroy);
  library.find("js_AddConsumer", out.add_consumer);
  library.find("jsConsumerInfo_Destroy", out.consumer_info_destroy);
  library.find("js_GetLastMsg", out.last_message);
  library.find("js_DeleteMsg", out.delete_message);
  library.find("natsMsg_GetSequence", out.message_sequence);
  library.find("js_Publish", out.js_publish);
  library.find("jsPubAck_Destroy", out.pub_ack_destroy);
  library.find("js_PullSubscribe", out.pull_subscribe);
  library.find("natsSubscription_Fetch", out.fetch);
  library.find("natsSubscription_NextMsg", out.next_message);
  library.find("natsSubscription_Destroy", out.subscription_destroy);
  library.find("natsMsgList_Destroy", out.list_destroy);
  library.find("natsMsg_Destroy", out.message_destroy);
  library.find("natsMsg_GetData", out.message_data);
  library.find("natsMsg_GetDataLength", out.message_size);
  library.find("natsMsg_GetReply", out.message_reply);
  library.find("natsMsg_GetMetaData", out.message_metadata);
  library.find("jsMsgMetaData_Destroy", out.metadata_destroy);
  if (!library.serves()) return no_nats(library.fault("nats.c"));
  const std::uint32_t version = out.get_version_number();
  if (version >> 8 != kNatsMinor) {
    return no_nats("the nats.c of this machine is another one (" + std::string(out.get_version()) + ')');
  }
  return out;
}

}  // namespace

Result<const NatsLibrary*> nats_library() { return loaded_once(load_nats); }

}  // namespace chasqui::store
