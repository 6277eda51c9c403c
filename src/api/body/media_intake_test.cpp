// Pictures and sounds in the bodies of every dialect, until they are units of a valid request, or an error that names
// the field. The simulated model takes both.
#include "api/body/media_intake.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <unistd.h>

#include "api/anthropic/anthropic.h"
#include "api/core/fake_node.h"
#include "api/llama_server/native.h"
#include "api/ollama/ollama.h"
#include "api/openai/completions.h"
#include "api/openai/native_json.h"
#include "api/openai/responses.h"
#include "api/session/session_body.h"
#include "base/base64.h"
#include "base/limits.h"
#include "model/sim_media.h"

namespace chasqui {
namespace {

const std::string kPicture = encode_base64("\x89PNG\r\n\x1a\na picture");
const std::string kOther = encode_base64(
    "\xff\xd8\xff"
    "another");
const std::string kSound = encode_base64("RIFF....WAVEa sound");
const std::string kTurnBegin = "<|im_start|>user\n";
const std::string kTurnEnd = "<|im_end|>\n<|im_start|>assistant\n";

std::string user(const std::string& content) { return R"({"messages":[{"role":"user","content":)" + content + "}]}"; }
std::string image(const std::string& url) { return R"({"type":"image_url","image_url":{"url":")" + url + R"("}})"; }
std::string png() { return image("data:image/png;base64," + kPicture); }
std::string text(const std::string& words) { return R"({"type":"text","text":")" + words + R"("})"; }
std::string audio(const std::string& data, const std::string& format = "wav") {
  return R"({"type":"input_audio","input_audio":{"data":")" + data + R"(","format":")" + format + R"("}})";
}
std::string block(const std::string& data) {
  return R"({"type":"image","source":{"type":"base64","media_type":"image/png","data":")" + data + R"("}})";
}

class MediaIntakeTest : public testing::Test {
 protected:
  // The prompt as clients of llama-server are told it; what is wrong instead, with its field before it.
  std::string told(const Result<Answer>& answer) {
    if (!answer) return "! " + answer.error().field + ": " + answer.error().message;
    const RequestPtr& request = answer->request;
    EXPECT_TRUE(fits_prompt(request->media, request->prompt, fake_.limits.vocabulary));
    units_ = request->media;
    return native_head(fake_.served, {request}).prompts.at(0);
  }
  std::string chat(const std::string& body) { return told(prepare_chat(fake_.served, caller_, body)); }
  std::string content(const std::string& parts) { return chat(user('[' + parts + ']')); }
  std::string field_of(const std::string& answer) const {
    EXPECT_TRUE(answer.starts_with("! ")) << answer;
    return answer.substr(2, answer.find(": ") - 2);
  }

  FakeNode fake_;
  Caller caller_;
  MediaUnitsPtr units_;
};

TEST_F(MediaIntakeTest, AnOpenAiPictureStandsWhereItsPartStood) {
  EXPECT_EQ(content(text("What is") + ',' + png() + ',' + text("this?") + ',' + text("And")),
            kTurnBegin + "What is<__media__>this?\nAnd" + kTurnEnd);
  ASSERT_EQ(units_->size(), 1u);
  EXPECT_EQ(units_->front().kind, MediaKind::picture);
  EXPECT_EQ(content(R"({"type":"image_url","image_url":"data:image/png;base64,)" + kPicture + R"("})"),
            kTurnBegin + "<__media__>" + kTurnEnd);
  EXPECT_EQ(content(image(kPicture)), kTurnBegin + "<__media__>" + kTurnEnd);
  EXPECT_EQ(content(image("DATA:image/jpeg;charset=x;BASE64," + kOther)), kTurnBegin + "<__media__>" + kTurnEnd);
}

TEST_F(MediaIntakeTest, TheSameFileIsTheSameUnitWhereverItStands) {
  content(png() + ',' + text("a") + ',' + png() + ',' + image("data:image/jpeg;base64," + kOther));
  ASSERT_EQ(units_->size(), 3u);
  EXPECT_EQ((*units_)[0].identity, (*units_)[1].identity);
  EXPECT_NE((*units_)[0].identity, (*units_)[2].identity);
}

TEST_F(MediaIntakeTest, ASoundIsTakenAsBase64OrAsADataUrl) {
  EXPECT_EQ(content(audio(kSound) + ',' + text("a")), kTurnBegin + "<__media__>a" + kTurnEnd);
  EXPECT_EQ(units_->front().kind, MediaKind::sound);
  EXPECT_EQ(content(audio("data:audio/wav;base64," + kSound)), kTurnBegin + "<__media__>" + kTurnEnd);
  EXPECT_EQ(field_of(content(audio(kSound, "ogg"))), "messages[0].content[0].input_audio.format");
  EXPECT_EQ(field_of(content(audio("data:image/png;base64," + kSound))), "messages[0].content[0].input_audio.data");
  EXPECT_EQ(field_of(content(R"({"type":"input_audio"})")), "messages[0].content[0].input_audio");
}

TEST_F(MediaIntakeTest, WhatIsNoFileIsRefusedByItsField) {
  const std::string url = "messages[0].content[1].image_url.url";
  for (const std::string& wrong :
       {std::string("https://example.org/a.png"), std::string("file:///etc/passwd"), std::string("data:image/png,x"),
        "data:text/plain;base64," + kPicture, "data:image/png;base64," + kPicture + "!", std::string("data:"),
        std::string("data:image/png;base64,"), std::string(), "data:image/png;base64, " + kPicture}) {
    EXPECT_EQ(field_of(content(text("a") + ',' + image(wrong))), url) << wrong;
  }
  EXPECT_NE(content(image("https://example.org/a.png")).find("not fetched from https"), std::string::npos);
  EXPECT_EQ(field_of(content(R"({"type":"image_url"})")), "messages[0].content[0].image_url");
  EXPECT_EQ(field_of(content(R"({"type":"image_url","image_url":{}})")), "messages[0].content[0].image_url.url");
  EXPECT_EQ(field_of(content(R"({"type":"video_url","video_url":{"url":"data:"}})")), "messages[0].content[0].type");
  // The reader says what is in them.
  EXPECT_EQ(field_of(content(image("data:image/png;base64," + kSound))), "messages");
}

TEST_F(MediaIntakeTest, FilesAreCountedAndMeasured) {
  std::string parts = png();
  for (std::size_t i = 1; i < kSizeLimit<"media_files">; ++i) parts += ',' + png();
  EXPECT_NE(content(parts).find("exceeds the available context"), std::string::npos);
  EXPECT_EQ(field_of(content(parts + ',' + png())), "messages[0].content[64]");
  const std::string large(kSizeLimit<"media_bytes"> / 3 * 4 + 8, 'A');
  EXPECT_EQ(field_of(content(image(large))), "messages[0].content[0].image_url.url");
}

TEST_F(MediaIntakeTest, AModelWithoutAReaderSaysWhatIsMissing) {
  fake_.model.media = std::make_shared<SimMedia>(fake_.model.tokenizer, true, false);
  EXPECT_EQ(content(audio(kSound)), "! messages[0].content[0]: messages[0].content[0]: this model takes no sounds");
  fake_.model.media = nullptr;
  EXPECT_EQ(content(text("a") + ',' + png()),
            "! messages[0].content[1]: messages[0].content[1]: this model takes no pictures; start the server with "
            "--mmproj FILE");
  const auto native = prepare_native(
      fake_.served, caller_, R"({"prompt":{"prompt_string":"<__media__>","multimodal_data":[")" + kPicture + R"("]}})");
  EXPECT_EQ(field_of(told(native)), "prompt.multimodal_data[0]");
}

TEST_F(MediaIntakeTest, AnthropicsPicturesStandInMessagesAndInResultsOfTools) {
  const auto messages = [this](const std::string& body) { return told(prepare_messages(fake_.served, caller_, body)); };
  EXPECT_EQ(messages(user('[' + block(kPicture) + ',' + text("What?") + ']')),
            kTurnBegin + "<__media__>What?" + kTurnEnd);
  const std::string call = R"({"role":"assistant","content":[{"type":"tool_use","id":"t","name":"shoot","input":{}}]})";
  const std::string result = R"({"type":"tool_result","tool_use_id":"t","content":[)" + text("Here:") + ',' +
                             block(kOther) + ',' + text("it is") + "]}";
  const std::string prompt = messages(R"({"messages":[{"role":"user","content":"Shoot"},)" + call +
                                      R"(,{"role":"user","content":[)" + result + "]}]}");
  EXPECT_NE(prompt.find("Here:<__media__>it is"), std::string::npos) << prompt;
  EXPECT_EQ(units_->size(), 1u);
  const std::string path = "messages[0].content[0].source";
  EXPECT_EQ(field_of(messages(user(R"([{"type":"image","source":{"type":"url","url":"https://a"}}])"))), path + ".url");
  EXPECT_EQ(field_of(messages(user('[' + block("?") + ']'))), path + ".data");
  EXPECT_EQ(field_of(messages(user(R"([{"type":"image"}])"))), path);
  EXPECT_EQ(field_of(messages(user(R"([{"type":"document"}])"))), "messages[0].content[0].type");
  const auto count = count_message_tokens(fake_.served, user('[' + block(kPicture) + ']'));
  const auto without = count_message_tokens(fake_.served, user(R"("")"));
  ASSERT_TRUE(count && without);
  const auto number = [](const std::string& body) { return std::stoi(body.substr(body.find(':') + 1)); };
  EXPECT_EQ(number(*count), number(*without) + SimMedia::kPositions);
}

TEST_F(MediaIntakeTest, OllamasPicturesStandBeforeTheText) {
  const auto ollama = [this](const std::string& body) {
    return told(prepare_ollama_chat(fake_.served, caller_, body));
  };
  const std::string two = R"("images":[")" + kPicture + R"(",")" + kOther + R"("])";
  EXPECT_EQ(ollama(R"({"messages":[{"role":"user","content":"What?",)" + two + "}]}"),
            kTurnBegin + "<__media__><__media__>What?" + kTurnEnd);
  EXPECT_EQ(ollama(R"({"messages":[{"role":"user",)" + two + "}]}"), kTurnBegin + "<__media__><__media__>" + kTurnEnd);
  EXPECT_EQ(field_of(ollama(R"({"messages":[{"role":"user","content":"a","images":["?"]}]})")),
            "messages[0].images[0]");
  EXPECT_EQ(field_of(ollama(R"({"messages":[{"role":"user","content":"a","images":[3]}]})")), "messages[0].images[0]");
  EXPECT_EQ(field_of(ollama(R"({"messages":[{"role":"user","content":"a","images":"x"}]})")), "messages[0].images");
  const auto generate = prepare_ollama_generate(fake_.served, caller_, R"({"prompt":"What?",)" + two + "}");
  EXPECT_EQ(told(generate), kTurnBegin + "<__media__><__media__>What?" + kTurnEnd);
  EXPECT_FALSE(generate->request->keep_tokens);  // as context they could not come back
  const auto raw = prepare_ollama_generate(fake_.served, caller_, R"({"prompt":"a","raw":true,)" + two + "}");
  EXPECT_EQ(field_of(told(raw)), "images");
}

TEST_F(MediaIntakeTest, ResponsesTakePicturesInMessagesAndOutputs) {
  const std::string picture = R"({"type":"input_image","image_url":"data:image/png;base64,)" + kPicture + R"("})";
  const auto ask =
      read_response_ask(fake_.served, caller_,
                        R"({"input":[{"role":"user","content":[{"type":"input_text","text":"a"},)" + picture +
                            R"(]},{"type":"function_call_output","call_id":"c","output":[)" + picture + "]}]}");
  ASSERT_TRUE(ask) << ask.error().message;
  EXPECT_EQ(ask->chat.messages[0].content, "a" + std::string(fake_.model.media->marker()));
  EXPECT_EQ(ask->chat.messages[0].media.size(), 1u);
  EXPECT_EQ(ask->chat.messages[1].media.size(), 1u);
  const auto by_id = read_response_ask(
      fake_.served, caller_, R"({"input":[{"role":"user","content":[{"type":"input_image","file_id":"file-1"}]}]})");
  ASSERT_FALSE(by_id);
  EXPECT_EQ(by_id.error().field, "input[0].content[0].file_id");
}

TEST_F(MediaIntakeTest, ANativePromptHasAFileForEachMarker) {
  const auto native = [this](const std::string& prompt) {
    return told(prepare_native(fake_.served, caller_, R"({"prompt":)" + prompt + "}"));
  };
  const auto one = [](const std::string& words, const std::string& files) {
    return R"({"prompt_string":")" + words + R"(","multimodal_data":[)" + files + "]}";
  };
  const std::string both = '"' + kPicture + "\",\"" + kSound + '"';
  EXPECT_EQ(native(one("a<__media__>b<__media__>c", both)), "a<__media__>b<__media__>c");
  EXPECT_EQ((*units_)[1].kind, MediaKind::sound);
  EXPECT_EQ(native('[' + one("a<__media__>", '"' + kPicture + '"') + ",\"text\"]"), "a<__media__>");
  EXPECT_EQ(native(one("a", "")), "a");
  EXPECT_EQ(field_of(native(one("a<__media__>", both))), "prompt.multimodal_data");
  EXPECT_EQ(field_of(native(one("<__media__>", "\"?\""))), "prompt.multimodal_data[0]");
  EXPECT_EQ(field_of(native(one("<__media__>", "\"" + encode_base64("GIF") + '"'))), "prompt");
  const auto echo = prepare_completion(fake_.served, caller_,
                                       R"({"echo":true,"prompt":)" + one("<__media__>", '"' + kPicture + '"') + "}");
  EXPECT_EQ(field_of(told(echo)), "echo");
}

TEST_F(MediaIntakeTest, FilesThatAreNamedHaveTogetherWhatABodyMayHave) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(testing::TempDir()) / ("chasqui-named-" + std::to_string(::getpid()));
  fs::create_directories(folder);
  std::ofstream(folder / "large.png") << "\x89PNG\r\n\x1a\n";
  fs::resize_file(folder / "large.png", kSizeLimit<"media_bytes">);
  EXPECT_NE(content(image("file://large.png")).find("not fetched from file"), std::string::npos) << "by default";
  fake_.config.defaults.media_folder = folder.string();
  EXPECT_EQ(content(image("file://large.png")), kTurnBegin + "<__media__>" + kTurnEnd);
  const std::string two = content(image("file://large.png") + ',' + image("FILE://large.png"));
  EXPECT_EQ(field_of(two), "messages[0].content[1].image_url.url");
  EXPECT_NE(two.find(std::to_string(kSizeLimit<"body_bytes">)), std::string::npos);
  fs::remove_all(folder);
}

TEST_F(MediaIntakeTest, ASessionKeepsFilesAndHasNoMarkersInItsTexts) {
  const auto delta = read_append(fake_.served, {0, 100, nullptr}, user('[' + png() + ']'));
  ASSERT_TRUE(delta) << delta.error().message;
  EXPECT_EQ(std::ranges::count_if(delta->tokens, [](Token token) { return token < kNoToken; }), SimMedia::kPositions);
  ASSERT_EQ(delta->chat->messages.size(), 1u);
  const ChatMessage& message = *delta->chat->messages.front();
  EXPECT_EQ(message.media.size(), 1u);
  EXPECT_EQ(message.content.find(fake_.model.media->marker()), std::string::npos);
  const SessionTail tail{static_cast<TokenCount>(delta->tokens.size()), 100, delta->chat};
  auto ask = read_session_ask(fake_.served, {}, tail, ServiceClass::standard, "{}");
  ASSERT_TRUE(ask) << ask.error().message;
  ASSERT_EQ(ask->units.size(), 1u);
  EXPECT_TRUE(place_units(ask->units, delta->tokens));
  fake_.model.media = nullptr;
  const auto without = read_session_ask(fake_.served, {}, tail, ServiceClass::standard, "{}");
  ASSERT_FALSE(without);
  EXPECT_EQ(without.error().code, ErrorCode::conflict);
}

}  // namespace
}  // namespace chasqui
