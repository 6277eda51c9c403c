/* The files of page/built and their compressed forms, byte for byte: chasqui_page_X … chasqui_page_X_end and
   chasqui_page_X_gz … chasqui_page_X_gz_end. */
#ifdef __APPLE__
#define SYMBOL(name) _##name
        .const_data
#else
#define SYMBOL(name) name
        .section .rodata
#endif
#define EMBED(name, file)                                                                                    \
        .globl SYMBOL(name)                                                                                  \
        ; .globl SYMBOL(name##_end)                                                                          \
        ; SYMBOL(name):                                                                                      \
        ; .incbin file                                                                                       \
        ; SYMBOL(name##_end):                                                                                \
        ; .byte 0
EMBED(chasqui_page_html, "index.html")
EMBED(chasqui_page_html_gz, "index.html.gz")
EMBED(chasqui_page_js, "page.js")
EMBED(chasqui_page_js_gz, "page.js.gz")
EMBED(chasqui_page_css, "page.css")
EMBED(chasqui_page_css_gz, "page.css.gz")
EMBED(chasqui_page_svg, "favicon.svg")
EMBED(chasqui_page_svg_gz, "favicon.svg.gz")
EMBED(chasqui_page_pdf, "pdf.js")
EMBED(chasqui_page_pdf_gz, "pdf.js.gz")
#ifdef __ELF__
        .section .note.GNU-stack,"",%progbits
#endif
