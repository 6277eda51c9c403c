#include "api/core/key_ring.h"

#include <gtest/gtest.h>

#include "api/core/request_hash.h"

namespace chasqui {
namespace {

KeyRing ring_of(std::string_view text) {
  KeyRing ring;
  ring.replace(*parse_keys({}, "keys", text));
  return ring;
}

TEST(KeyRing, FindsOnlyAnEqualKey) {
  const KeyRing ring = ring_of("alpha\nbeta\n");
  EXPECT_FALSE(ring.open());
  EXPECT_TRUE(ring.find("alpha"));
  EXPECT_TRUE(ring.find("beta"));
  for (const char* wrong : {"alph", "alphaa", "Alpha", "gamma", ""}) EXPECT_FALSE(ring.find(wrong)) << wrong;
}

TEST(KeyRing, WithoutKeysEverybodyIsTheTenantWithoutAName) {
  const KeyRing ring;
  EXPECT_TRUE(ring.open());
  const auto caller = ring.find("anything");
  ASSERT_TRUE(caller);
  EXPECT_EQ(caller->tenant.id, 0u);
  EXPECT_EQ(caller->most_urgent, ServiceClass::interactive);
}

TEST(KeyRing, GivesTenantsNamesThatOutliveTheProcess) {
  const KeyRing ring = ring_of("one name=alice\ntwo name=bob\nthree\n");
  const KeyRing later = ring_of("three\nfour name=alice\n");
  const std::uint64_t alice = ring.find("one")->tenant.lasting;
  EXPECT_EQ(later.find("four")->tenant.lasting, alice) << "the name counts, not the key, nor the order";
  EXPECT_NE(later.find("four")->tenant.id, ring.find("one")->tenant.id) << "or this test would prove nothing";
  EXPECT_EQ(later.find("three")->tenant.lasting, ring.find("three")->tenant.lasting);
  EXPECT_NE(ring.find("two")->tenant.lasting, alice);
  EXPECT_EQ(later.caller_of(alice)->tenant.id, later.find("four")->tenant.id);
  EXPECT_FALSE(later.caller_of(ring.find("two")->tenant.lasting)) << "its key is gone";
  EXPECT_FALSE(later.caller_of(0)) << "there are keys";
  EXPECT_TRUE(KeyRing().caller_of(0));
  EXPECT_FALSE(KeyRing().caller_of(alice));
  EXPECT_GT(alice, 1u);
  EXPECT_EQ(KeyRing().find("anything")->tenant.lasting, 0u) << "the anonymous tenant";
}

TEST(KeyRing, KnowsWhoseAKeyIs) {
  const KeyRing ring = ring_of("one name=alice weight=2 in_flight=5\ntwo name=alice class=background\nthree\n");
  const auto one = ring.find("one");
  const auto two = ring.find("two");
  const auto three = ring.find("three");
  ASSERT_TRUE(one && two && three);
  EXPECT_EQ(one->tenant.id, two->tenant.id);
  EXPECT_NE(one->tenant.id, three->tenant.id);
  EXPECT_NE(three->tenant.id, 0u);
  EXPECT_EQ(two->tenant.weight, 2);
  EXPECT_EQ(two->in_flight, 5u);
  EXPECT_EQ(one->service_class, ServiceClass::standard);
  EXPECT_EQ(one->most_urgent, ServiceClass::interactive);
  EXPECT_EQ(two->service_class, ServiceClass::background);
  EXPECT_EQ(two->most_urgent, ServiceClass::background);
  EXPECT_EQ(ring.tenants(), 2u);
}

TEST(KeyRing, KeepsTheIdsOfTenantsWhenItsKeysAreReplaced) {
  KeyRing ring = ring_of("a name=alice\nb name=bob\nc\n");
  const auto alice = ring.find("a")->tenant.id;
  const auto bob = ring.find("b")->tenant.id;
  const auto nameless = ring.find("c")->tenant.id;
  ring.replace(*parse_keys({}, "keys", "d name=dora\nc\na2 name=alice weight=3\n"));
  EXPECT_FALSE(ring.find("a"));
  EXPECT_FALSE(ring.find("b"));
  EXPECT_EQ(ring.find("a2")->tenant.id, alice);
  EXPECT_EQ(ring.find("a2")->tenant.weight, 3);
  EXPECT_EQ(ring.find("c")->tenant.id, nameless);
  EXPECT_NE(ring.find("d")->tenant.id, bob) << "an id is not used again";
  ring.replace(*parse_keys({}, "keys", "b name=bob\n"));
  EXPECT_EQ(ring.find("b")->tenant.id, bob) << "what is kept for it is there again";
  EXPECT_EQ(ring.tenants(), 1u);
}

TEST(KeyRing, ReadsBothHeaders) {
  const KeyRing ring = ring_of("salt\n");
  const auto with = [&ring](const char* name, const char* value) {
    net::HttpRequest request;
    request.headers.add(name, value);
    return ring.find(request).has_value();
  };
  EXPECT_TRUE(with("Authorization", "Bearer salt"));
  EXPECT_TRUE(with("Authorization", "bearer salt"));
  EXPECT_TRUE(with("Authorization", "BEARER  salt"));
  EXPECT_FALSE(with("Authorization", "Bearersalt"));
  EXPECT_TRUE(with("X-Api-Key", "salt"));
  EXPECT_FALSE(with("Authorization", "Basic salt"));
  EXPECT_FALSE(with("Authorization", "Bearer "));
  EXPECT_FALSE(ring.find(net::HttpRequest()));
}

TEST(KeyRing, ReadsTheLimitOfTheFirstToken) {
  const KeyRing ring;
  const auto limit = [&ring](const char* value) {
    net::HttpRequest request;
    request.headers.add("X-TTFT-Timeout-Ms", value);
    return ring.find(request)->ttft_ms;
  };
  EXPECT_EQ(limit("2500"), 2500);
  for (const char* bad : {"", "x", "12x", "1.5", "99999999999999999999"}) EXPECT_EQ(limit(bad), 0) << bad;
  EXPECT_FALSE(ring.find(net::HttpRequest())->ttft_ms);
}

TEST(KeyRing, WhoMayOperateThroughTheAdminListener) {
  const auto may = [](const KeyRing& ring, bool here, const char* key) {
    net::HttpRequest request;
    net::HttpPeer peer;
    peer.is_loopback = here;
    request.peer = std::make_shared<const net::HttpPeer>(peer);
    if (key != nullptr) request.headers.add("X-Api-Key", key);
    return ring.may_operate(request);
  };
  for (const KeyRing& ring : {KeyRing(), ring_of("a\n"), ring_of("a\nroot admin=yes\n")}) {
    EXPECT_TRUE(may(ring, true, nullptr)) << "who is on this machine";
    EXPECT_FALSE(may(ring, false, nullptr));
    EXPECT_FALSE(may(ring, false, "a"));
  }
  EXPECT_TRUE(may(ring_of("a\nroot admin=yes\n"), false, "root"));
}

TEST(KeyRing, WhoMayChangeWhatHoldsForAll) {
  const auto is_admin = [](const KeyRing& ring, const char* key) {
    net::HttpRequest request;
    request.headers.add("X-Api-Key", key);
    return ring.is_admin(request);
  };
  EXPECT_TRUE(is_admin(KeyRing(), "")) << "a server without keys";
  EXPECT_TRUE(is_admin(ring_of("a\n"), "a")) << "the only tenant";
  EXPECT_TRUE(is_admin(ring_of("a name=x\nb name=x\n"), "b"));
  EXPECT_FALSE(is_admin(ring_of("a\n"), "b"));
  EXPECT_FALSE(is_admin(ring_of("a\nb\n"), "a"));
  const KeyRing ring = ring_of("a name=x\nroot name=x admin=yes\n");
  EXPECT_TRUE(is_admin(ring, "root"));
  EXPECT_FALSE(is_admin(ring, "a")) << "another key is for that";
  Caller local;
  local.tenant = tenant_of_user(1000);
  EXPECT_FALSE(ring_of("a\n").is_admin(local));
}

TEST(RequestHash, TellsTenantsRoutesAndBodiesApart) {
  const RequestHasher maker;
  const RequestHash one = maker.of(1, "/generate", "body");
  EXPECT_EQ(one, maker.of(1, "/generate", "body"));
  EXPECT_NE(one, maker.of(2, "/generate", "body"));
  EXPECT_NE(one, maker.of(1, "/v1/completions", "body"));
  EXPECT_NE(one, maker.of(1, "/generate", "body2"));
  EXPECT_NE(one, RequestHasher().of(1, "/generate", "body")) << "every process has a key of its own";
}

TEST(RequestHash, ReadsBothEndsOfALongBody) {
  const RequestHasher maker;
  std::string body(1 << 20, 'x');
  const RequestHash before = maker.of(1, "/", body);
  body.back() = 'y';
  const RequestHash end = maker.of(1, "/", body);
  body.front() = 'y';
  EXPECT_NE(before, end);
  EXPECT_NE(end, maker.of(1, "/", body));
  EXPECT_NE(maker.of(1, "/", std::string(100'000, 'x')), maker.of(1, "/", std::string(100'001, 'x')));
}

TEST(KeyRing, users_of_this_machine_are_tenants_of_their_own_also_after_a_restart) {
  const Tenant root = tenant_of_user(0);
  const Tenant ada = tenant_of_user(1000);
  EXPECT_NE(root.id, ada.id);
  EXPECT_NE(root.id, 0u);
  EXPECT_NE(root.lasting, 0u);
  EXPECT_NE(root.lasting, ada.lasting);
  EXPECT_GT(tenant_of_user(0xffffffff).id, 1u << 20) << "no key's";
  const KeyRing keys;
  EXPECT_EQ(keys.tenant_of(root.lasting), root.id);
  EXPECT_EQ(keys.tenant_of(ada.lasting), ada.id);
}

}  // namespace
}  // namespace chasqui
