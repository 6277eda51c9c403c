// A session: an exact token history that lives between requests. What was sent to the model and what the model has
// said is kept as tokens and never tokenized again; a generation is a request whose prompt is the history, and the
// prefix cache has what was computed of it. So a session holds no slot and no cells while no request generates in it.
// Pictures and sounds are tokens below zero (core/media), and files of its messages.
// Owned by a SessionTable, which alone changes it; the thread of the table.
//
//   idle ──take()──▶ preparing ──begin()──▶ generating ──finished()──▶ idle
//     ▲                │  ▲                    │
//     └── append() or ─┘  └── stopped to move ─┘
//         given back
//
// While it is generating, the history is that of before: what stands before the answer, and the answer itself, are
// added together when it ends.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/checksum.h"
#include "base/clock.h"
#include "core/types.h"
#include "engine/answer_text.h"
#include "model/chat_history.h"
#include "model/tokenizer.h"

namespace chasqui {

// Made by the server, unpredictable: "sess_" and 32 letters and digits.
struct SessionId {
  std::string text;
  auto operator<=>(const SessionId&) const = default;
};

// What an input adds to a session.
struct SessionDelta {
  std::vector<Token> tokens;
  ChatHistoryPtr chat;  // the conversation afterwards; null in a session of plain text
};

struct SessionSettings {
  ServiceClass service_class = ServiceClass::standard;  // of generations that do not say
  Duration ttl{};                                       // since the last use
  std::int64_t created = 0;                             // seconds since 1970, shown to clients
};

struct Session {
  enum class State { idle, preparing, generating };

  SessionId id;
  std::uint64_t serial = 0;  // the n-th that was made
  std::uint64_t pin = 0;     // Request::pin of its generations: its serial, or its parent's pin
  std::uint32_t tenant = 0;
  std::uint64_t owner = 0;  // the same tenant by its name that lasts, see Tenant
  SessionSettings settings;
  Checksum vocabulary{};  // what its tokens mean, see SessionTable::use_model()
  std::vector<Token> tokens;
  ChatHistoryPtr chat;  // null: plain text, or nothing yet
  State state = State::idle;
  std::uint64_t changes = 0;  // of its history, so far
  TimePoint last_used{};

  const Tokenizer* tokenizer = nullptr;  // while it is in use: of the model that reads it
  RequestId request;                     // while generating
  SessionDelta before_answer;          // … what was put before the answer
  std::unique_ptr<AnswerText> answer;  // … in a chat: what was said so far
  bool cancelled = false;              // while preparing: its generation is not to begin; or it is to end
  bool moves = false;                  // while generating: another node is to go on with its answer
  std::optional<std::vector<Token>> stopped{};  // while preparing: an answer that has stopped for that
  bool ended = false;                  // while it is in use: it is hidden, and goes when that is over

  std::size_t file_bytes() const { return chat ? chat->file_bytes : 0; }
  TokenCount length() const { return static_cast<TokenCount>(tokens.size()); }
  // A session that is in use does not expire.
  TimePoint expires(TimePoint now) const { return (state == State::idle ? last_used : now) + settings.ttl; }
};
std::string_view name(Session::State state);

// Where a session was before a change.
struct SessionMark {
  SessionId id;
  std::uint64_t serial = 0;
  std::uint64_t changes = 0;
  std::size_t tokens = 0;
  ChatHistoryPtr chat;
};
inline SessionMark mark_of(const Session& session) {
  return {session.id, session.serial, session.changes, session.tokens.size(), session.chat};
}

}  // namespace chasqui
