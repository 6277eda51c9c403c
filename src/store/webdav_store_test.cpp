#include "store/webdav_store.h"

#include <set>

#include <gtest/gtest.h>

#include "store/fake_exchanges.h"

namespace chasqui::store {
namespace {

class WebdavStoreTest : public testing::Test {
 protected:
  WebdavStore store(FakeExchanges::Answering answering) {
    return WebdavStore({"http://dav", "/a%20b/c"}, std::make_unique<FakeExchanges>(answering, seen_));
  }
  // With folders, as servers have them; `missing` is what a PUT gets where one is.
  WebdavStore with_folders(std::set<std::string>& folders, int missing) {
    return store([&folders, missing](const HttpCall& call) {
      std::string path = call.url.substr(std::string_view("http://dav").size());
      if (path.ends_with('/')) path.pop_back();
      if (call.method == "MKCOL" && folders.contains(path)) return fake_answer(405);
      const bool is_put = call.method == "PUT";
      if (!folders.contains(path.substr(0, path.rfind('/')))) return fake_answer(is_put ? missing : 409);
      if (call.method == "MKCOL") folders.insert(path);
      return fake_answer(201);
    });
  }

  std::vector<std::string> seen_;
};

TEST_F(WebdavStoreTest, MakesFoldersOnlyWhereTheyAreMissing) {
  for (const int missing : {404, 409, 500}) {
    std::set<std::string> folders{"", "/a%20b"};
    WebdavStore dav = with_folders(folders, missing);
    const std::vector<StoredObject> objects{{"s/x/1", {}}, {"s/x/2", {}}, {"bad name", {}}, {"s/y/1", {}}};
    seen_.clear();
    const auto outcomes = dav.put(objects);
    EXPECT_FALSE(outcomes[0]);
    EXPECT_FALSE(outcomes[1]);
    EXPECT_EQ(outcomes[2]->code, ErrorCode::invalid_request);
    EXPECT_FALSE(outcomes[3]);
    EXPECT_EQ(folders, (std::set<std::string>{"", "/a%20b", "/a%20b/c", "/a%20b/c/s", "/a%20b/c/s/x", "/a%20b/c/s/y"}));
    seen_.clear();
    EXPECT_FALSE(dav.put({objects.data(), 1}).front());
    EXPECT_EQ(seen_, std::vector<std::string>{"PUT http://dav/a%20b/c/s/x/1"});
  }
}

TEST_F(WebdavStoreTest, SaysWhyAFolderCannotBeMade) {
  WebdavStore dav = store([](const HttpCall& call) { return fake_answer(call.method == "PUT" ? 409 : 403); });
  const StoredObject object{"s/1", {}};
  EXPECT_EQ(dav.put({&object, 1}).front()->code, ErrorCode::forbidden);
  WebdavStore lost = store([](const HttpCall&) { return fake_answer(404); });
  EXPECT_EQ(lost.put({&object, 1}).front()->code, ErrorCode::unavailable);  // not that an object is not found
}

TEST_F(WebdavStoreTest, GetsAndRemoves) {
  WebdavStore dav = store([](const HttpCall& call) {
    if (call.url.ends_with("none")) return fake_answer(404);
    if (call.url.ends_with("secret")) return fake_answer(401);
    return fake_answer(call.method == "GET" ? 200 : 204, "one");
  });
  const std::vector<std::string> names{"s/1", "s/none", "s/secret"};
  const auto got = dav.get(names, 10);
  EXPECT_EQ(*got[0], fake_bytes("one"));
  EXPECT_EQ(got[1].error().code, ErrorCode::not_found);
  EXPECT_EQ(got[2].error().code, ErrorCode::forbidden);
  const auto removed = dav.remove(names);
  EXPECT_FALSE(removed[0]);
  EXPECT_FALSE(removed[1]);
  EXPECT_EQ(removed[2]->code, ErrorCode::forbidden);
}

TEST_F(WebdavStoreTest, ListsWhatIsDirectlyInAFolder) {
  WebdavStore dav = store([](const HttpCall& call) {
    EXPECT_EQ(call.headers.front(), "Depth: 1");
    return fake_answer(207, R"(<?xml version="1.0" encoding="utf-8" ?>
<D:multistatus xmlns:D="DAV:">
<D:response><D:href>/a%20b/c/s/</D:href></D:response>
<D:response><D:href>http://other/a%20b/c/s/two</D:href></D:response>
<D:response><D:href>/a%20b/%63/s/one/</D:href></D:response>
<D:response><D:href>/a%20b/c/s/.DS_Store</D:href></D:response>
</D:multistatus>)");
  });
  const auto names = dav.list("s", 2);
  ASSERT_TRUE(names) << names.error().message;
  EXPECT_EQ(*names, (std::vector<std::string>{"s/one", "s/two"}));
  EXPECT_EQ(seen_, std::vector<std::string>{"PROPFIND http://dav/a%20b/c/s/"});
  EXPECT_EQ(dav.list("s", 1).error().code, ErrorCode::unavailable);
}

TEST_F(WebdavStoreTest, TakesNoSenselessListForAnEmptyOne) {
  const auto list = [this](int status, std::string body) {
    WebdavStore dav = store([status, body](const HttpCall&) { return fake_answer(status, body); });
    return dav.list("s", 10);
  };
  EXPECT_EQ(*list(404, ""), std::vector<std::string>{});
  EXPECT_FALSE(list(200, "<html/>"));
  EXPECT_FALSE(list(207, "<html/>"));
  EXPECT_FALSE(list(207, "<multistatus/>"));
  EXPECT_FALSE(list(207,
                    "<multistatus><response><href>/a%20b/c/s/</href></response>"
                    "<response><href>/elsewhere</href></response></multistatus>"));
  EXPECT_FALSE(list(207, "<multistatus><response><href>%zz</href></response></multistatus>"));
  EXPECT_EQ(list(403, "").error().code, ErrorCode::forbidden);
}

}  // namespace
}  // namespace chasqui::store
