#include "store/s3_store.h"

#include <gtest/gtest.h>

#include "store/fake_exchanges.h"

namespace chasqui::store {
namespace {

constexpr std::string_view kNoSuchKey = "<Error><Code>NoSuchKey</Code></Error>";

class S3StoreTest : public testing::Test {
 protected:
  S3Store store(FakeExchanges::Answering answering, const std::string& prefix = "nodes/") {
    return S3Store({"http://127.0.0.1:9000", "bucket", prefix}, std::make_unique<FakeExchanges>(answering, seen_));
  }
  S3Store listing(std::vector<std::string> pages) {
    return store([pages, at = std::size_t{0}](const HttpCall&) mutable {
      const std::string& page = pages[std::min(at++, pages.size() - 1)];
      return fake_answer(200, "<ListBucketResult>" + page + "</ListBucketResult>");
    });
  }

  std::vector<std::string> seen_;
};

TEST_F(S3StoreTest, PutsGetsAndRemovesByPath) {
  std::string body;
  S3Store s3 = store([&body](const HttpCall& call) {
    if (call.method == "PUT") {
      body.assign(reinterpret_cast<const char*>(call.body->data()), call.body->size());
      return fake_answer(200);
    }
    if (call.method == "DELETE") return call.url.ends_with("none") ? fake_answer(404, kNoSuchKey) : fake_answer(204);
    return call.most == 3 ? fake_answer(200, body) : fake_answer(500);
  });
  const StoredObject object{"a/b", fake_bytes("one")};
  EXPECT_FALSE(s3.put({&object, 1}).front());
  EXPECT_EQ(*s3.get({&object.name, 1}, 3).front(), object.bytes);
  const std::vector<std::string> both{"a/b", "a/none"};
  for (const auto& outcome : s3.remove(both)) EXPECT_FALSE(outcome);
  EXPECT_EQ(seen_,
            (std::vector<std::string>{
                "PUT http://127.0.0.1:9000/bucket/nodes/a/b", "GET http://127.0.0.1:9000/bucket/nodes/a/b",
                "DELETE http://127.0.0.1:9000/bucket/nodes/a/b", "DELETE http://127.0.0.1:9000/bucket/nodes/a/none"}));
}

TEST_F(S3StoreTest, AnswersEachOfABatchInItsPlace) {
  S3Store s3 = store([](const HttpCall& call) {
    if (call.url.ends_with("/full")) return fake_answer(507);
    if (call.url.ends_with("/none")) return fake_answer(404, kNoSuchKey);
    return fake_answer(200, "x");
  });
  const std::vector<StoredObject> objects{{"full", {}}, {"../x", {}}, {"good", {}}};
  const auto put = s3.put(objects);
  EXPECT_EQ(put[0]->code, ErrorCode::storage_full);
  EXPECT_EQ(put[1]->code, ErrorCode::invalid_request);
  EXPECT_FALSE(put[2]);
  const std::vector<std::string> names{"a b", "none", "good"};
  const auto got = s3.get(names, 10);
  EXPECT_EQ(got[0].error().code, ErrorCode::invalid_request);
  EXPECT_EQ(got[1].error().code, ErrorCode::not_found);
  EXPECT_EQ(*got[2], fake_bytes("x"));
  const auto removed = s3.remove(names);
  EXPECT_EQ(removed[0]->code, ErrorCode::invalid_request);
  EXPECT_FALSE(removed[1]);
  EXPECT_FALSE(removed[2]);
  EXPECT_EQ(seen_.size(), 6u);
}

TEST_F(S3StoreTest, BelievesNo404OfSomethingElse) {
  for (const char* body : {"", "<html>not found</html>", "<Error><Code>NoSuchBucket</Code></Error>"}) {
    S3Store s3 = store([body](const HttpCall&) { return fake_answer(404, body); });
    const std::string name = "a";
    EXPECT_EQ(s3.get({&name, 1}, 10).front().error().code, ErrorCode::unavailable) << body;
    EXPECT_EQ(s3.remove({&name, 1}).front()->code, ErrorCode::unavailable) << body;
    EXPECT_EQ(s3.list("a", 10).error().code, ErrorCode::unavailable) << body;
  }
}

TEST_F(S3StoreTest, ListsPagesInOrderWithoutWhatIsNotOurs) {
  S3Store s3 =
      listing({"<IsTruncated>true</IsTruncated><NextContinuationToken>a+/=</NextContinuationToken>"
               "<Contents><Key>nodes/s/b</Key></Contents><Contents><Key>nodes/s/</Key></Contents>"
               "<Contents><Key>nodes/s/x y.txt</Key></Contents>",
               "<CommonPrefixes><Prefix>nodes/s/a/</Prefix></CommonPrefixes>"
               "<CommonPrefixes><Prefix>nodes/s/b/</Prefix></CommonPrefixes>"});
  const auto names = s3.list("s", 10);
  ASSERT_TRUE(names) << names.error().message;
  EXPECT_EQ(*names, (std::vector<std::string>{"s/a", "s/b"}));
  const std::string query = "delimiter=%2F&list-type=2&max-keys=1000&prefix=nodes%2Fs%2F";
  EXPECT_EQ(seen_,
            (std::vector<std::string>{"GET http://127.0.0.1:9000/bucket?" + query,
                                      "GET http://127.0.0.1:9000/bucket?continuation-token=a%2B%2F%3D&" + query}));
}

TEST_F(S3StoreTest, ListsTheRootWithoutAPrefix) {
  S3Store s3 = store(
      [](const HttpCall&) {
        return fake_answer(200, "<ListBucketResult><Contents><Key>a</Key></Contents></ListBucketResult>");
      },
      "");
  EXPECT_EQ(*s3.list("", 10), std::vector<std::string>{"a"});
  EXPECT_TRUE(seen_.front().ends_with("&prefix=")) << seen_.front();
}

TEST_F(S3StoreTest, EndsWhereAListMakesNoSense) {
  const std::string more = "<IsTruncated>true</IsTruncated>";
  const std::string token = "<NextContinuationToken>t</NextContinuationToken>";
  for (const std::string& page : {std::string("<Contents><Key>other/a</Key></Contents>"), more, more + token,
                                  more + token + "<Contents><Key>nodes/s/a</Key></Contents>", std::string("<broken")}) {
    const auto names = listing({page}).list("s", 100);
    ASSERT_FALSE(names) << page;
    EXPECT_EQ(names.error().code, ErrorCode::unavailable) << page;
  }
  EXPECT_LE(seen_.size(), 120u);
  EXPECT_FALSE(store([](const HttpCall&) { return fake_answer(200, "<Other/>"); }).list("s", 10));
  EXPECT_FALSE(store([](const HttpCall&) { return fake_answer(301); }).list("s", 10));
}

}  // namespace
}  // namespace chasqui::store
