/* The files of texts.inc, byte for byte: chasqui_license_X … chasqui_license_X_end. */
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
#define TEXT(name, file) EMBED(chasqui_license_##name, file)
#include "texts.inc"
#ifdef __ELF__
        .section .note.GNU-stack,"",%progbits
#endif
