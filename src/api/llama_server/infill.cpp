#include "api/llama_server/infill.h"

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

struct File {
  std::string name;
  std::string text;
};

struct Gap {
  std::string prefix;
  std::string suffix;
  std::string prompt;  // goes on after the prefix, and the model after it
  std::vector<File> files;
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
void add_files(const InfillTokens& marks, const std::vector<File>& files, GapTokens& out) {
  if (marks.repository >= 0) {
    out.add(marks.repository);
    out.add("repository\n");
  }
  for (const File& file : files) {
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
  GapTokens out(served), before(served), after(served);
  if (info.adds_bos) out.add(info.bos);
  if (!gap.files.empty()) add_files(info.infill, gap.files, out);
  before.add(gap.prefix);
  before.add(gap.prompt);
  after.add(gap.suffix);
  add_gap(served, before, after, out);
  return native_answer(served, std::move(native), {{std::move(out.all), nullptr}});
}

}  // namespace chasqui
