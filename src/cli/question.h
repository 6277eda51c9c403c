// What every server is asked alike, over HTTP and in frames: the messages of a conversation and how to answer. Pure.
#pragma once

#include "base/json_writer.h"
#include "cli/answerer.h"
#include "cli/conversation.h"

namespace chasqui::cli {

// Into the object that `json` is in.
void write_question(JsonWriter& json, const Conversation& conversation, const AnswerSettings& settings);

}  // namespace chasqui::cli
