#include "model/sim_tokenizer.h"

#include <algorithm>

#include "base/error.h"
#include "base/json_writer.h"

namespace chasqui {
namespace {

constexpr std::array<std::string_view, 3> kControl{"<|im_start|>", "<|im_end|>", "<|endoftext|>"};

constexpr std::string_view kWords =
    "the of and to in is it that was for on are with as his they be at one have this from or had by hot but some what "
    "there we can out other were all your when up use word how said each she which do their time if will way about "
    "many then them would write like so these her long make thing see him two has look more day could go come did my "
    "sound no most number who over know water than call first people may down side been now find any new work part "
    "take get place made live where after back little only round man year came show every good me give our under name "
    "very through just form much great think say help low line before turn cause same mean differ move right boy old "
    "too does tell sentence set three want air well also play small end put home read hand port large spell add even "
    "land here must big high such follow act why ask men change went light kind off need house picture try us again "
    "animal point mother world near build self earth father head stand own page should country found answer school "
    "grow study still learn plant cover food sun four thought let keep eye never last door between city tree cross "
    "since hard start might story saw far sea draw left late run while press close night real life few stop open "
    "seem together next white children begin got walk example ease paper often always music those both mark book "
    "letter until mile river car feet care second group carry took rain eat room friend began idea fish mountain "
    "north once base hear horse cut sure watch color face wood main enough plain girl usual young ready above ever "
    "red list though feel talk bird soon body dog family direct pose leave song measure state product black short "
    "numeral class wind question happen complete ship area half rock order fire south problem piece told knew pass "
    "farm top whole king size heard best hour better true during hundred remember step early hold west ground "
    "interest reach fast five sing listen six table travel less morning ten simple several vowel toward war lay "
    "against pattern slow center love person money serve appear road map science rule govern pull cold notice voice "
    "fall power town fine certain fly unit lead cry dark machine note wait plan figure star box noun field rest "
    "correct able pound done beauty drive stood contain front teach week final gave green oh quick develop sleep "
    "warm free minute strong special mind behind clear tail produce fact street inch lot nothing course stay wheel "
    "full force blue object decide surface deep moon island foot yet busy test record boat common gold possible";

}  // namespace

SimTokenizer::SimTokenizer() {
  for (int byte = 0; byte < 256; ++byte) pieces_.emplace_back(1, static_cast<char>(byte));
  for (std::string_view control : kControl) pieces_.emplace_back(control);
  for (std::size_t begin = 0; begin < kWords.size();) {
    const std::size_t end = std::min(kWords.find(' ', begin), kWords.size());
    pieces_.emplace_back(1, ' ').append(kWords.substr(begin, end - begin));
    begin = end + 1;
  }
  for (std::size_t i = kFirstWord; i < pieces_.size(); ++i) {
    CHECK(words_.emplace(pieces_[i], static_cast<Token>(i)).second, pieces_[i]);
    word_bytes_max_ = std::max(word_bytes_max_, pieces_[i].size());
  }
}

// The longest word that the text begins with, -1 when there is none.
Token SimTokenizer::longest_word(std::string_view text) const {
  if (text.front() != ' ') return -1;
  for (std::size_t size = std::min(word_bytes_max_, text.size()); size > 1; --size) {
    const auto found = words_.find(text.substr(0, size));
    if (found != words_.end()) return found->second;
  }
  return -1;
}

std::vector<Token> SimTokenizer::tokenize(std::string_view text, AddSpecial, ParseSpecial parse) const {
  std::vector<Token> tokens;
  while (!text.empty()) {
    Token token = longest_word(text);
    if (parse == ParseSpecial::yes && text.starts_with("<|")) {
      const auto control = std::ranges::find_if(kControl, [&](std::string_view c) { return text.starts_with(c); });
      if (control != kControl.end()) token = kImStart + static_cast<Token>(control - kControl.begin());
    }
    if (token < 0) token = static_cast<unsigned char>(text.front());
    tokens.push_back(token);
    text.remove_prefix(pieces_[static_cast<std::size_t>(token)].size());
  }
  return tokens;
}

std::string_view SimTokenizer::piece(Token token) const {
  return token >= kImStart && token < kFirstWord ? std::string_view() : special_piece(token);
}

std::string_view SimTokenizer::special_piece(Token token) const { return pieces_[static_cast<std::size_t>(token)]; }

namespace {

void append_turn(std::string& out, std::string_view role, std::string_view content) {
  out += "<|im_start|>";
  out += role;
  out += '\n';
  out += content;
  out += "<|im_end|>\n";
}

std::string describe_tools(const std::vector<Tool>& tools) {
  std::string text = "# Tools\n\n<tools>\n";
  for (const Tool& tool : tools) {
    JsonWriter json(text);
    json.begin_object();
    json.field("name", tool.name);
    json.field("description", tool.description);
    json.raw("parameters", tool.parameters.empty() ? "{}" : tool.parameters);
    json.end_object();
    text += '\n';
  }
  return text + "</tools>";
}

std::string describe_message(const ChatMessage& message) {
  if (message.role == "tool") return "<tool_response>\n" + message.content + "\n</tool_response>";
  std::string text = message.content;
  for (const ToolCall& call : message.tool_calls) {
    if (!text.empty()) text += '\n';
    text += "<tool_call>\n";
    JsonWriter json(text);
    json.begin_object();
    json.field("name", call.name);
    json.raw("arguments", call.arguments.empty() ? "{}" : call.arguments);
    json.end_object();
    text += "\n</tool_call>";
  }
  return text;
}

}  // namespace

Result<std::string> SimChatTemplate::render(const Chat& chat) const {
  if (chat.messages.empty()) return invalid_field("messages", "messages must not be empty");
  std::string out;
  if (!chat.tools.empty()) append_turn(out, "system", describe_tools(chat.tools));
  for (std::size_t i = 0; i < chat.messages.size(); ++i) {
    const ChatMessage& message = chat.messages[i];
    const bool last = i + 1 == chat.messages.size();
    if (last && chat.continue_final_message && message.role == "assistant") {
      return out + "<|im_start|>assistant\n" + message.content;
    }
    const bool as_user = message.role == "tool";
    append_turn(out,
                as_user                       ? "user"
                : message.role == "developer" ? "system"
                                              : message.role,
                describe_message(message));
  }
  if (chat.add_generation_prompt) out += "<|im_start|>assistant\n";
  return out;
}

std::string_view SimChatTemplate::source() const {
  return "{%- for message in messages -%}{{- '<|im_start|>' + message.role + '\\n' + message.content + "
         "'<|im_end|>\\n' -}}{%- endfor -%}{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\n' -}}"
         "{%- endif -%}";
}

}  // namespace chasqui
