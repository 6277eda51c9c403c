/* chasqui-demo.gguf, byte for byte: chasqui_demo_model … chasqui_demo_model_end. Aligned as GGUF tensors want it. */
#ifdef __APPLE__
#define SYMBOL(name) _##name
        .const_data
#else
#define SYMBOL(name) name
        .section .rodata
#endif
        .globl SYMBOL(chasqui_demo_model)
        .globl SYMBOL(chasqui_demo_model_end)
        .p2align 6
SYMBOL(chasqui_demo_model):
        .incbin "chasqui-demo.gguf"
SYMBOL(chasqui_demo_model_end):
        .byte 0
#ifdef __ELF__
        .section .note.GNU-stack,"",%progbits
#endif
