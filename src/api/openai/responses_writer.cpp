#include "api/core/answer_reader.h"
#include "api/core/errors.h"
#include "api/openai/openai_json.h"
#include "api/openai/responses.h"
#include "base/json_writer.h"
#include "base/random_id.h"
#include "net/sse.h"

namespace chasqui {
namespace {

constexpr std::string_view kSpace = " \n\r\t";

// One item of `output`.
struct Item {
  enum class Kind { reasoning, message, call };
  Kind kind = Kind::message;
  std::string id;
  std::string call_id;
  std::string name;
  std::string text;  // of reasoning and messages; arguments of calls
};

void write_part(JsonWriter& json, const Item& item) {
  json.begin_object();
  json.field("type", item.kind == Item::Kind::reasoning ? "reasoning_text" : "output_text");
  json.field("text", item.text);
  if (item.kind == Item::Kind::message) {
    json.begin_array("annotations");
    json.end_array();
    json.begin_array("logprobs");
    json.end_array();
  }
  json.end_object();
}

// `begun`: as it stands in output_item.added, without what it is going to say.
void write_item(JsonWriter& json, const Item& item, std::string_view status, bool begun) {
  json.begin_object();
  json.field("id", item.id);
  json.field("status", status);
  if (item.kind == Item::Kind::call) {
    json.field("type", "function_call");
    json.field("call_id", item.call_id);
    json.field("name", item.name);
    json.field("arguments", begun ? std::string_view() : std::string_view(item.text));
    return json.end_object();
  }
  const bool reasoning = item.kind == Item::Kind::reasoning;
  json.field("type", reasoning ? "reasoning" : "message");
  if (reasoning) {
    json.begin_array("summary");
    json.end_array();
  } else {
    json.field("role", "assistant");
  }
  json.begin_array("content");
  if (!begun) write_part(json, item);
  json.end_array();
  json.end_object();
}

class ResponseWriter final : public AnswerWriter {
 public:
  ResponseWriter(ResponseHead head, RequestId request, AnswerFormatPtr format, ResponseStore& store, const Clock& clock)
      : head_(std::move(head)), request_(request), reader_(std::move(format)), store_(store), clock_(clock) {}

  // A client that left: this response gets no end.
  ~ResponseWriter() override {
    if (begun_ && !ended_) keep("cancelled", nullptr);
  }

  void begin() {
    begun_ = true;
    StoredResponse stored;
    stored.input = std::move(head_.input);
    stored.conversation = std::move(head_.before);
    stored.running = request_;
    if (head_.store) put(std::move(stored), "in_progress", nullptr);
  }

  void text(const Event& event, std::string& out) override {
    open(out);
    for (const AnswerDelta& delta : reader_.read(event)) write_delta(delta, out);
  }

  // As llama-server tells it: with the event that says that the response is under way.
  void progress(const Event& event, std::string& out) override {
    if (!opened_) {
      opened_ = true;
      write_state("response.created", "in_progress", nullptr, out);
    }
    write_state("response.in_progress", "in_progress", nullptr, out, &event);
  }

  void end(const Event& event, std::string& out) override {
    text(event, out);
    finish(event, out);
  }

  void fail(const Error& error, std::string& out) override {
    open(out);
    error_ = error.message;
    ended_ = true;
    status_ = "failed";
    keep("failed", nullptr);
    write_state("response.failed", "failed", nullptr, out);
  }

  void hear(const Event& event) override {
    scratch_.clear();
    text(event, scratch_);
  }

  bool stays_on_loop() const override { return true; }  // the store is the loop's

  // Codex gives a stream up that has no event for five minutes.
  void ping(std::string& out) override {
    if (opened_) return write_state("response.in_progress", "in_progress", nullptr, out);
    open(out);
  }

  std::string whole(const std::vector<Collected>& answers) override {
    scratch_.clear();
    finish(answers.front().finished, scratch_);
    return object(status_, &answers.front().finished.usage);
  }

 private:
  // `type` and what else is in a frame; it is closed by send().
  JsonWriter frame(std::string_view type) {
    frame_.clear();
    type_ = type;
    JsonWriter json(frame_);
    json.begin_object();
    json.field("type", type);
    json.field("sequence_number", sequence_++);
    return json;
  }
  void send(std::string& out) {
    frame_ += '}';
    net::append_sse_event(out, frame_, type_);
  }

  void open(std::string& out) {
    if (opened_) return;
    opened_ = true;
    write_state("response.created", "in_progress", nullptr, out);
    write_state("response.in_progress", "in_progress", nullptr, out);
  }

  void write_state(std::string_view type, std::string_view status, const Usage* usage, std::string& out,
                   const Event* reading = nullptr) {
    JsonWriter json = frame(type);
    json.raw("response", object(status, usage));
    if (usage != nullptr) {
      json.key("timings");
      write_timings(json, *usage);
    }
    if (reading != nullptr) {
      json.key("prompt_progress");
      write_prompt_progress(json, *reading);
    }
    send(out);
  }

  void write_delta(const AnswerDelta& delta, std::string& out) {
    switch (delta.kind) {
      case AnswerDelta::Kind::reasoning:
        begin_item(Item::Kind::reasoning, out);
        return write_piece("response.reasoning_text.delta", delta.text, out);
      case AnswerDelta::Kind::content: {
        // Space between the parts of an answer is no item.
        const bool speaks = open_item_ && items_.back().kind == Item::Kind::message;
        if (!speaks && delta.text.find_first_not_of(kSpace) == std::string::npos) {
          space_ += delta.text;
          return;
        }
        const std::string text = std::exchange(space_, {}) + delta.text;
        begin_item(Item::Kind::message, out);
        return write_piece("response.output_text.delta", text, out);
      }
      case AnswerDelta::Kind::call_begin: {
        end_item("completed", out);
        Item& item = items_.emplace_back();
        item.kind = Item::Kind::call;
        item.id = random_id("fc_");
        item.call_id = delta.id;
        item.name = delta.name;
        return write_added(out);
      }
      case AnswerDelta::Kind::call_arguments:
        return write_piece("response.function_call_arguments.delta", delta.text, out);
    }
  }

  void begin_item(Item::Kind kind, std::string& out) {
    if (open_item_ && items_.back().kind == kind) return;
    end_item("completed", out);
    Item& item = items_.emplace_back();
    item.kind = kind;
    item.id = random_id(kind == Item::Kind::reasoning ? "rs_" : "msg_");
    write_added(out);
    JsonWriter json = frame("response.content_part.added");
    write_place(json);
    json.key("part");
    write_part(json, item);
    send(out);
  }

  void write_added(std::string& out) {
    open_item_ = true;
    JsonWriter json = frame("response.output_item.added");
    json.field("output_index", items_.size() - 1);
    json.key("item");
    write_item(json, items_.back(), "in_progress", true);
    send(out);
  }

  void write_place(JsonWriter& json) const {
    json.field("item_id", items_.back().id);
    json.field("output_index", items_.size() - 1);
    if (items_.back().kind != Item::Kind::call) json.field("content_index", 0);
  }

  void write_piece(std::string_view type, const std::string& text, std::string& out) {
    items_.back().text += text;
    JsonWriter json = frame(type);
    write_place(json);
    json.field("delta", text);
    if (items_.back().kind == Item::Kind::message) {
      json.raw("logprobs", "[]");
    }
    send(out);
  }

  void end_item(std::string_view status, std::string& out) {
    space_.clear();
    if (!open_item_) return;
    open_item_ = false;
    const Item& item = items_.back();
    const bool call = item.kind == Item::Kind::call;
    JsonWriter done = frame(call                               ? "response.function_call_arguments.done"
                            : item.kind == Item::Kind::message ? "response.output_text.done"
                                                               : "response.reasoning_text.done");
    write_place(done);
    if (call) done.field("name", item.name);
    done.field(call ? "arguments" : "text", item.text);
    if (item.kind == Item::Kind::message) {
      done.raw("logprobs", "[]");
    }
    send(out);
    if (!call) {
      JsonWriter part = frame("response.content_part.done");
      write_place(part);
      part.key("part");
      write_part(part, item);
      send(out);
    }
    JsonWriter json = frame("response.output_item.done");
    json.field("output_index", items_.size() - 1);
    json.key("item");
    write_item(json, item, status, false);
    send(out);
  }

  void finish(const Event& event, std::string& out) {
    ended_ = true;
    ended_at_ = clock_.unix_seconds();
    const bool whole = event.reason == FinishReason::stop;
    status_ = whole ? "completed" : event.reason == FinishReason::cancelled ? "cancelled" : "incomplete";
    // The calls of an answer that was cut short are not to be made.
    last_item_ = whole ? "completed" : "incomplete";
    end_item(last_item_, out);
    keep(status_, &event.usage);
    write_state(whole ? "response.completed" : "response.incomplete", status_, &event.usage, out);
  }

  std::string object(std::string_view status, const Usage* usage) const {
    std::string out;
    JsonWriter json(out);
    json.begin_object();
    json.field("id", head_.id);
    json.field("object", "response");
    json.field("created_at", head_.created);
    json.key("completed_at");
    if (status == "completed") {
      json.number(ended_at_);
    } else {
      json.null();
    }
    json.field("status", status);
    json.field("model", head_.model);
    json.key("error");
    if (error_.empty()) {
      json.null();
    } else {
      json.begin_object();
      json.field("code", "server_error");
      json.field("message", error_);
      json.end_object();
    }
    json.raw("incomplete_details", status == "incomplete" ? R"({"reason":"max_output_tokens"})" : "null");
    json.begin_array("output");
    for (std::size_t i = 0; i < items_.size(); ++i) {
      const bool last = i + 1 == items_.size();
      if (ended_ || !last) write_item(json, items_[i], last ? last_item_ : "completed", false);
    }
    json.end_array();
    json.key("usage");
    write_usage_of(json, usage);
    if (usage != nullptr) {
      json.key("timings");
      write_timings(json, *usage);
    }
    json.end_object();
    out.pop_back();
    out += head_.echo;
    out += '}';
    return out;
  }

  void write_usage_of(JsonWriter& json, const Usage* usage) const {
    if (usage == nullptr) return json.null();
    json.begin_object();
    json.field("input_tokens", usage->prompt);
    json.begin_object("input_tokens_details");
    json.field("cached_tokens", usage->cached);
    json.end_object();
    json.field("output_tokens", usage->completion);
    json.begin_object("output_tokens_details");
    json.field("reasoning_tokens", reader_.reasoning_tokens());
    json.end_object();
    json.field("total_tokens", usage->prompt + usage->completion);
    json.end_object();
  }

  void put(StoredResponse stored, std::string_view status, const Usage* usage) {
    stored.id = head_.id;
    stored.tenant = head_.tenant;
    stored.body = std::make_shared<const std::string>(object(status, usage));
    for (const Item& item : items_) stored.output_ids.push_back(item.id);
    store_.put(std::move(stored), clock_.now());
  }

  void keep(std::string_view status, const Usage* usage) {
    if (!head_.store) return;
    // What a client has deleted while it ran stays deleted, and so does what has made room for others.
    const StoredResponse* const begun = store_.find({head_.tenant, head_.id}, clock_.now());
    if (begun == nullptr) return;
    StoredResponse stored;
    stored.input = begun->input;
    stored.conversation = begun->conversation;
    if (ended_ && begun->running) {
      Conversation conversation = *begun->conversation;
      ChatMessage answer;
      answer.role = "assistant";
      answer.content = reader_.content();
      answer.reasoning = reader_.reasoning();
      for (const SpokenCall& call : reader_.calls()) {
        if (status == "completed") answer.tool_calls.push_back({call.id, call.name, call.arguments});
      }
      conversation.push_back(std::make_shared<const ChatMessage>(std::move(answer)));
      stored.conversation = std::make_shared<const Conversation>(std::move(conversation));
    }
    put(std::move(stored), status, usage);
  }

  ResponseHead head_;  // its `before` and `input` are the store's once it has begun
  const RequestId request_;
  AnswerReader reader_;
  ResponseStore& store_;
  const Clock& clock_;
  std::vector<Item> items_;
  std::string frame_;
  std::string scratch_;
  std::string space_;  // held back until something follows
  std::string error_;
  std::string_view type_;
  std::string_view status_ = "in_progress";
  std::string_view last_item_ = "completed";
  std::int64_t sequence_ = 0;
  std::int64_t ended_at_ = 0;  // seconds since 1970
  bool begun_ = false;
  bool opened_ = false;
  bool open_item_ = false;
  bool ended_ = false;
};

}  // namespace

std::unique_ptr<AnswerWriter> make_response_writer(ResponseHead head, RequestId request, AnswerFormatPtr format,
                                                   ResponseStore& store, const Clock& clock,
                                                   std::function<void()>& on_submitted) {
  auto writer = std::make_unique<ResponseWriter>(std::move(head), request, std::move(format), store, clock);
  on_submitted = [made = writer.get()] { made->begin(); };
  return writer;
}

}  // namespace chasqui
