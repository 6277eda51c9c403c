// One page of a list, as OpenAI's clients turn them: `limit`, `order` and `after` of the query. Pure; any thread.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/json_writer.h"
#include "net/http_request.h"

namespace chasqui {

struct PageWish {
  std::size_t limit = 0;
  bool newest_first = true;
  std::string after{};  // the id of the last one that the client has; empty: from the beginning
};

inline Result<PageWish> read_page_wish(const net::HttpRequest& request, std::size_t usual, std::size_t most) {
  PageWish wish;
  wish.limit = usual;
  wish.after = request.query("after").value_or("");
  if (const auto text = request.query("limit")) {
    const char* const end = text->data() + text->size();
    const auto [last, failed] = std::from_chars(text->data(), end, wish.limit);
    if (failed != std::errc{} || last != end || wish.limit < 1 || wish.limit > most) {
      return invalid_field("limit", "limit must be a whole number between 1 and " + std::to_string(most));
    }
  }
  const std::string order = request.query("order").value_or("desc");
  if (order != "asc" && order != "desc") return invalid_field("order", "order must be asc or desc");
  wish.newest_first = order == "desc";
  return wish;
}

// A page ends after so much text, however many items the client wants: it is written on the loop, but where one item
// alone may be longer.
constexpr std::size_t kPageBytes = 256 * 1024;

// `items`: pointers to what has an id, the oldest first. `write` puts one into words.
template <class Item, class Write>
Result<std::string> write_page(std::vector<Item> items, const PageWish& wish, const Write& write) {
  if (wish.newest_first) std::ranges::reverse(items);
  auto first = items.begin();
  if (!wish.after.empty()) {
    first = std::ranges::find_if(items, [&](const Item& item) { return item->id == wish.after; });
    if (first == items.end()) return invalid_field("after", "after must be the id of one in this list");
    ++first;
  }
  const auto left = static_cast<std::size_t>(items.end() - first);
  const auto most = first + static_cast<std::ptrdiff_t>(std::min(left, wish.limit));
  std::string out;
  JsonWriter json(out);
  json.begin_object();
  json.field("object", "list");
  json.begin_array("data");
  auto last = first;
  for (; last != most && out.size() < kPageBytes; ++last) write(json, **last);
  json.end_array();
  for (const auto& [name, item] : {std::pair("first_id", first), std::pair("last_id", last - (first != last))}) {
    json.key(name);
    if (first == last) {
      json.null();
    } else {
      json.string((*item)->id);
    }
  }
  json.field("has_more", last != items.end());
  json.end_object();
  return out;
}

}  // namespace chasqui
