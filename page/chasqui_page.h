// The page inside the binary: the files of page/built, as they are and compressed, see embed.S. For targets that link
// chasqui_page. Constant; any thread.
#pragma once

#include <cstddef>
#include <span>

// NOLINTBEGIN(readability-identifier-naming): the assembler's symbols
#define CHASQUI_PAGE_FILE(name)                       \
  extern const std::byte chasqui_page_##name[];       \
  extern const std::byte chasqui_page_##name##_end[]; \
  extern const std::byte chasqui_page_##name##_gz[];  \
  extern const std::byte chasqui_page_##name##_gz_end[];
extern "C" {
CHASQUI_PAGE_FILE(html)
CHASQUI_PAGE_FILE(js)
CHASQUI_PAGE_FILE(css)
CHASQUI_PAGE_FILE(svg)
CHASQUI_PAGE_FILE(pdf)
}
#undef CHASQUI_PAGE_FILE
// NOLINTEND(readability-identifier-naming)

namespace chasqui::page {

struct Bytes {
  const std::byte* begin;
  const std::byte* end;
  const std::byte* gzip_begin;
  const std::byte* gzip_end;

  std::span<const std::byte> plain() const { return {begin, end}; }
  std::span<const std::byte> gzip() const { return {gzip_begin, gzip_end}; }
};

inline Bytes html() {
  return {chasqui_page_html, chasqui_page_html_end, chasqui_page_html_gz, chasqui_page_html_gz_end};
}
inline Bytes script() { return {chasqui_page_js, chasqui_page_js_end, chasqui_page_js_gz, chasqui_page_js_gz_end}; }
inline Bytes style() { return {chasqui_page_css, chasqui_page_css_end, chasqui_page_css_gz, chasqui_page_css_gz_end}; }
inline Bytes icon() { return {chasqui_page_svg, chasqui_page_svg_end, chasqui_page_svg_gz, chasqui_page_svg_gz_end}; }
inline Bytes pdf_reader() {
  return {chasqui_page_pdf, chasqui_page_pdf_end, chasqui_page_pdf_gz, chasqui_page_pdf_gz_end};
}

}  // namespace chasqui::page
