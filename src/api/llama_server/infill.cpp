#include "api/llama_server/infill.h"

#include <algorithm>

#include "api/body/fields.h"
#include "api/body/gap_tokens.h"
#include "api/body/prompt.h"
#include "api/llama_server/native.h"
#include "base/limits.h"

namespace chasqui {
namespace {

namespace json = boost::json;

constexpr std::size_t kFilesMax = kSizeLimit<"infill_files">;
constexpr std::size_t kTextBytesMax = kSizeLimit<"infill_bytes">;

struct FileOfPrompt {
  std::string name;
  std::string text;
};

struct Gap {
  std::string prefix;
  std::string suffix;
  std::string prompt;  // goes on after the prefix, and the model after it
  std::vector<FileOfPrompt> files;
};

Gap read_gap(Fields& fields) {
  Gap gap;
  const auto prefix = fields.string("input_prefix");
  const auto suffix = fields.string("input_suffix");
  if (!prefix) fields.refuse("input_prefix", "a string");
  if (!suffix) fields.refuse("input_suffix", "a string");
  gap.prefix = prefix.value_or("");
  gap.suffix = suffix.value_or("");
  gap.prompt = fields.string("prompt").value_or("");
  std::size_t bytes = gap.prefix.size() + gap.suffix.size() + gap.prompt.size();
  const json::array* files = fields.array("input_extra");
  if (files != nullptr && files->size() > kFilesMax) fields.refuse("input_extra", "an array of at most 256 files");
  for (std::size_t i = 0; files != nullptr && i < files->size() && fields.ok(); ++i) {
    const std::string path = "input_extra[" + std::to_string(i) + ']';
    const json::object* file = (*files)[i].if_object();
    if (file == nullptr) {
      fields.refuse(path, "an object with filename and text");
      break;
    }
    Fields inner(*file, path);
    const auto text = inner.string("text");
    if (!text) inner.refuse("text", "a string");
    const auto name = inner.string("filename");
    if (!inner.ok()) {
      fields.refuse(inner.error());
      break;
    }
    bytes += text->size() + name.value_or("").size();
    gap.files.push_back({std::string(name.value_or("tmp")), std::string(*text)});
  }
  if (bytes > kTextBytesMax) fields.refuse("input_prefix", "at most 4 MiB with input_suffix and input_extra");
  return gap;
}

// In the order of Qwen's report on repositories: the other files, then the gap. Where a model knows no files, a line
// stands between them.
void add_files(const InfillTokens& marks, const std::vector<FileOfPrompt>& files, GapTokens& out) {
  if (marks.repository >= 0) {
    out.add(marks.repository);
    out.add("repository\n");
  }
  for (const FileOfPrompt& file : files) {
    if (marks.file >= 0) {
      out.add(marks.file);
      out.add(file.name + "\n");
    } else {
      out.add("\n\n--- snippet ---\n\n");
    }
    out.add(file.text);
  }
  if (marks.file >= 0) {
    out.add(marks.file);
    out.add("filename\n");
  }
}

// Editors send all that they have, and count on the server to leave out what does not fit: as in llama-server what is
// far from the gap, of the files the first.
struct AroundGap {
  std::vector<Token>& files;
  std::vector<Token>& prefix;
  std::vector<Token>& suffix;
  std::size_t prompt;  // tokens, and those of the marks
};

void keep_near_the_gap(const AroundGap& parts, std::size_t context, std::size_t answer) {
  constexpr std::size_t kNear = 2048;  // tokens around the gap: llama-server's batch
  constexpr std::size_t kMarks = 4;
  const std::size_t all =
      parts.files.size() + parts.prefix.size() + parts.suffix.size() + parts.prompt + kMarks + answer;
  if (all <= context) return;
  const std::size_t room = context - std::min(context, answer + parts.prompt + kMarks);
  const std::size_t near = std::min(kNear, room);
  const std::size_t before = std::min(parts.prefix.size(), near - std::min(near / 4, parts.suffix.size()));
  const auto cut_front = [](std::vector<Token>& tokens, std::size_t left) {
    const std::size_t cut = tokens.size() - std::min(left, tokens.size());
    tokens.erase(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(cut));
  };
  cut_front(parts.prefix, before);
  parts.suffix.resize(std::min(parts.suffix.size(), near - parts.prefix.size()));
  cut_front(parts.files, room - parts.prefix.size() - parts.suffix.size());
}

}  // namespace

Result<Answer> prepare_infill(const ServedModel& served, const Caller& caller, const std::string& body) {
  auto object = parse_json_object(body);
  if (!object) return object.error();
  Fields fields(*object);
  NativeBody native = read_native_body(served, caller, fields);
  const Gap gap = read_gap(fields);
  if (!fields.ok()) return fields.error();
  const ModelInfo& info = served.model.info;
  if (!info.infill.present()) return no_infill("input_suffix");
  GapTokens out(served), files(served), before(served), prompt(served), after(served);
  if (!gap.files.empty()) add_files(info.infill, gap.files, files);
  before.add(gap.prefix);
  prompt.add(gap.prompt);
  after.add(gap.suffix);
  constexpr std::int64_t kAnswerUnsaid = 128;
  const std::int64_t wanted = native.draft.max_tokens.value_or(-1);
  const auto answer = static_cast<std::size_t>(wanted < 0 ? kAnswerUnsaid : wanted);
  const auto context = static_cast<std::size_t>(served.limits.context);
  keep_near_the_gap({files.all, before.all, after.all, prompt.all.size()}, context, std::min(answer, context / 4));
  if (info.adds_bos) out.add(info.bos);
  out.add(files.all);
  before.add(prompt.all);
  add_gap(served, before, after, out);
  return native_answer(served, std::move(native), {{std::move(out.all), nullptr}});
}

}  // namespace chasqui
