// From a client's input to the tokens that it adds to a session: the one place where the input of a session is
// tokenized. Text is taken as it is, messages become what the chat template puts behind the history, tokens stay what
// they are; the model's first token (BOS) comes once, at the very beginning. A session is plain text or a chat, for
// good, by what it begins with. Pictures and sounds of messages are decoded when they come, so that a client is told at
// once of one that cannot be read; the session keeps them as files, and each generation decodes them again. Pure and
// slow, as templates and tokenizers are: any thread, in a server the offload pool.
#pragma once

#include <string_view>
#include <vector>

#include "base/error.h"
#include "engine/session.h"
#include "model/loaded_model.h"

namespace chasqui {

// What the input is put behind. Made from a session that is taken, so that it stays true meanwhile.
struct SessionTail {
  TokenCount tokens = 0;
  TokenCount tokens_max = 0;
  ChatHistoryPtr chat;
};

class SessionInput {
 public:
  // The model outlives it.
  SessionInput(const LoadedModel& model, SessionTail tail) : model_(model), tail_(std::move(tail)) {}

  // Errors name the field in the words of the sessions' routes: text, tokens, messages.
  Result<SessionDelta> from_text(std::string_view text, ParseSpecial parse) const;
  Result<SessionDelta> from_tokens(std::vector<Token> tokens) const;
  // `tools` only where the session begins. MediaReader::marker() stands in the messages' texts for their files.
  Result<SessionDelta> from_messages(std::vector<ChatMessage> messages, std::vector<Tool> tools = {}) const;
  // What must stand before an answer: in a chat the template's opening of the assistant's turn, otherwise nothing.
  Result<SessionDelta> before_answer() const;
  // What the files of the session are to the model: for place_units(). Errors: conflict where it reads none.
  Result<MediaUnits> units() const;

 private:
  bool begins() const { return tail_.tokens == 0 && !tail_.chat; }
  Result<void> check_fits(std::size_t bytes, const char* field) const;
  std::vector<Token> begun(std::vector<Token> tokens) const;
  Result<MediaPrompt> read_files(std::string_view text, const std::vector<MediaFilePtr>& files) const;
  Result<std::vector<Token>> tokenize(std::string_view text, ParseSpecial parse, const char* field) const;

  const LoadedModel& model_;
  const SessionTail tail_;
};

// Of a generation whose prompt has the numbers of its session's files.
Error other_projector();

}  // namespace chasqui
