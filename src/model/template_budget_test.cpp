#include "model/template_budget.h"

#include <gtest/gtest.h>

#include "base/thread_time.h"
#include "model/llama_chat_template.h"
#include "model/test_weights.h"

namespace chasqui {
namespace {

Chat chat_of(std::size_t messages) {
  Chat chat;
  chat.messages.resize(messages);
  for (std::size_t i = 0; i < messages; ++i) {
    chat.messages[i].role = i % 2 == 0 ? "user" : "assistant";
    chat.messages[i].content = "x";
  }
  return chat;
}

std::unique_ptr<LlamaChatTemplate> made(const std::string& source) {
  auto out = LlamaChatTemplate::make(test_weights(), source);
  EXPECT_TRUE(out) << out.error().message;
  return out ? std::move(*out) : nullptr;
}

// Each of them computes for minutes with a few hundred messages, and for no time with three.
const char* const kSlow[] = {
    "{% for a in messages %}{% for b in messages %}{% for c in messages %}{{ a.content }}{% endfor %}{% endfor %}"
    "{% endfor %}",
    "{% for a in messages %}{% for b in messages %}{% for c in messages if c.role == 'nobody' %}x{% endfor %}"
    "{% endfor %}{{ a.content }}{% endfor %}",
    "{% macro m(n) %}{% if n > 0 %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(messages | length) }}"
    "{{ messages[0].content }}",
};

TEST(TemplateBudget, EndsWhatComputesForTooLong) {
  for (const char* source : kSlow) {
    SCOPED_TRACE(source);
    const auto slow = made(source);
    ASSERT_NE(slow, nullptr);
    ASSERT_TRUE(slow->render(chat_of(3)));
    const Duration begun = thread_time();
    {
      const TemplateBudget budget(milliseconds(20));
      const auto text = slow->render(chat_of(200));
      ASSERT_FALSE(text);
      EXPECT_EQ(text.error().code, ErrorCode::invalid_request);
      EXPECT_EQ(text.error().field, "messages");
      EXPECT_NE(text.error().message.find("computes for too long"), std::string::npos) << text.error().message;
    }
    EXPECT_LT(thread_time() - begun, seconds(1));
    EXPECT_TRUE(slow->render(chat_of(3))) << "the next one has its own";
  }
}

TEST(TemplateBudget, IsEachRequestsOwn) {
  const auto chatml = made("{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}");
  ASSERT_NE(chatml, nullptr);
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(chatml->render(chat_of(50)));
}

TEST(TemplateBudget, OfAnInnerOneIsNoLongerThanTheOuter) {
  const TemplateBudget outer(milliseconds(0));
  TemplateBudget inner(seconds(100));
  EXPECT_THROW(
      {
        for (int i = 0; i < 1'000'000; ++i) inner.count();
      },
      std::runtime_error);
  EXPECT_FALSE(outer.is_used_up()) << "that was the inner one";
  EXPECT_THROW(inner.count(), std::runtime_error) << "and it stays so";
}

}  // namespace
}  // namespace chasqui
