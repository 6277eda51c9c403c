// The machine's nats.c, loaded when --batch-queue names a NATS server: all else starts without it. Loaded once, by the
// thread that asks first; then constant. The library has threads of its own, for its sockets and timers.
#pragma once

#include <nats/nats.h>

#include "base/error.h"

namespace chasqui::store {

struct NatsLibrary {
  decltype(&::nats_GetVersion) get_version = nullptr;
  decltype(&::nats_GetVersionNumber) get_version_number = nullptr;
  decltype(&::natsStatus_GetText) status_text = nullptr;
  decltype(&::natsOptions_Create) options_create = nullptr;
  decltype(&::natsOptions_Destroy) options_destroy = nullptr;
  decltype(&::natsOptions_SetURL) set_url = nullptr;
  decltype(&::natsOptions_SetUserInfo) set_user_info = nullptr;
  decltype(&::natsOptions_SetTimeout) set_timeout = nullptr;
  decltype(&::natsOptions_SetName) set_name = nullptr;
  decltype(&::natsOptions_SetAllowReconnect) set_allow_reconnect = nullptr;
  decltype(&::natsConnection_Connect) connect = nullptr;
  decltype(&::natsConnection_Destroy) connection_destroy = nullptr;
  decltype(&::natsConnection_IsClosed) is_closed = nullptr;
  decltype(&::natsConnection_FlushTimeout) flush = nullptr;
  decltype(&::natsConnection_GetMaxPayload) max_payload = nullptr;
  decltype(&::natsConnection_Publish) publish = nullptr;
  decltype(&::natsConnection_SubscribeSync) subscribe = nullptr;
  decltype(&::natsConnection_JetStream) jetstream = nullptr;
  decltype(&::jsCtx_Destroy) jetstream_destroy = nullptr;
  decltype(&::jsOptions_Init) js_options_init = nullptr;
  decltype(&::jsPubOptions_Init) pub_options_init = nullptr;
  decltype(&::jsSubOptions_Init) sub_options_init = nullptr;
  decltype(&::jsStreamConfig_Init) stream_config_init = nullptr;
  decltype(&::jsConsumerConfig_Init) consumer_config_init = nullptr;
  decltype(&::js_AddStream) add_stream = nullptr;
  decltype(&::js_GetStreamInfo) stream_info = nullptr;
  decltype(&::jsStreamInfo_Destroy) stream_info_destroy = nullptr;
  decltype(&::js_AddConsumer) add_consumer = nullptr;
  decltype(&::jsConsumerInfo_Destroy) consumer_info_destroy = nullptr;
  decltype(&::js_GetLastMsg) last_message = nullptr;
  decltype(&::js_DeleteMsg) delete_message = nullptr;
  decltype(&::natsMsg_GetSequence) message_sequence = nullptr;
  decltype(&::js_Publish) js_publish = nullptr;
  decltype(&::jsPubAck_Destroy) pub_ack_destroy = nullptr;
  decltype(&::js_PullSubscribe) pull_subscribe = nullptr;
  decltype(&::natsSubscription_Fetch) fetch = nullptr;
  decltype(&::natsSubscription_NextMsg) next_message = nullptr;
  decltype(&::natsSubscription_Destroy) subscription_destroy = nullptr;
  decltype(&::natsMsgList_Destroy) list_destroy = nullptr;
  decltype(&::natsMsg_Destroy) message_destroy = nullptr;
  decltype(&::natsMsg_GetData) message_data = nullptr;
  decltype(&::natsMsg_GetDataLength) message_size = nullptr;
  decltype(&::natsMsg_GetReply) message_reply = nullptr;
  decltype(&::natsMsg_GetMetaData) message_metadata = nullptr;
  decltype(&::jsMsgMetaData_Destroy) metadata_destroy = nullptr;
};

// Errors say what is missing, and what to install.
Result<const NatsLibrary*> nats_library();

}  // namespace chasqui::store
