#include "pull/repo_name.h"

#include <algorithm>
#include <initializer_list>

#include "base/ascii.h"

namespace chasqui::pull {
namespace {

constexpr std::size_t kLongest = 96;  // of a name on the hub

bool is_word_letter(char c) { return is_ascii_word(c) || c == '_'; }

// Two dashes would be a slash in the name of a folder of the cache.
bool is_name(std::string_view text) {
  if (text.empty() || text.size() > kLongest || !is_word_letter(text.front()) || text.ends_with('.')) return false;
  if (text.find("--") != text.npos || text.find("..") != text.npos) return false;
  return std::ranges::all_of(text, [](char c) { return is_word_letter(c) || c == '-' || c == '.'; });
}

}  // namespace

Result<RepoName> read_repo_name(std::string_view typed) {
  std::string_view rest = typed;
  for (const std::string_view before : {"https://", "hf.co/", "huggingface.co/"}) {
    if (rest.starts_with(before)) rest.remove_prefix(before.size());
  }
  const std::size_t colon = rest.find(':');
  const std::string_view repo = rest.substr(0, colon);
  const std::string_view quant = colon == rest.npos ? std::string_view() : rest.substr(colon + 1);
  const std::size_t slash = repo.find('/');
  const bool named = slash != repo.npos && is_name(repo.substr(0, slash)) && is_name(repo.substr(slash + 1));
  if (!named || (colon != rest.npos && !is_name(quant))) {
    return invalid_field("",
                         "a model of Hugging Face is called USER/REPO or USER/REPO:QUANT; got " + std::string(typed));
  }
  return RepoName{std::string(repo), std::string(quant)};
}

}  // namespace chasqui::pull
