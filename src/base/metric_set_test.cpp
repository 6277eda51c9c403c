#include "base/metric_set.h"

#include <gtest/gtest.h>

namespace chasqui {
namespace {

struct ParcelMetrics : MetricSet {
  Counter sent{*this,
               MetricRow("parcels_sent_total", "Parcels that were sent.").also("post:parcels_total", "Parcels.")};
  Counter kept{*this, MetricRow().also("post:parcels_total", {})};
  MetricArray<Counter, 2> lost{*this, [](std::size_t i) {
                                 return MetricRow("parcels_lost_total", i == 0 ? "Parcels that were lost." : "",
                                                  metric_label("at", i == 0 ? "sea" : "land"))
                                     .also("post:lost_total", "Lost.", metric_label("place", "any"));
                               }};
  FloatGauge speed{*this, {"parcel_speed", "Metres a second."}};
  FloatGauge hours{*this, {"parcel_hours_total", "Hours on the way."}};
  Histogram weight{*this, MetricRow("parcel_weight", "Weight.").also("post:weight", "Weight.").buckets({2}), {1, 2, 4}};
  Histogram size{*this, MetricRow("parcel_size", "Size.").in_json_only(), {1}};
};

TEST(MetricSet, ShowsWhatIsDeclaredInIt) {
  ParcelMetrics metrics;
  MetricsPage page;
  metrics.add_to(page);
  metrics.sent.add(3);
  metrics.kept.add(2);
  metrics.lost[1].add();
  metrics.speed.set(1.5);
  metrics.hours.set(0.5);
  metrics.weight.observe(4);
  EXPECT_EQ(page.render(),
            "# HELP parcels_sent_total Parcels that were sent.\n# TYPE parcels_sent_total counter\n"
            "parcels_sent_total 3\n"
            "# HELP parcels_lost_total Parcels that were lost.\n# TYPE parcels_lost_total counter\n"
            "parcels_lost_total{at=\"sea\"} 0\nparcels_lost_total{at=\"land\"} 1\n"
            "# HELP parcel_speed Metres a second.\n# TYPE parcel_speed gauge\nparcel_speed 1.5\n"
            "# HELP parcel_hours_total Hours on the way.\n# TYPE parcel_hours_total counter\nparcel_hours_total 0.5\n"
            "# HELP parcel_weight Weight.\n# TYPE parcel_weight histogram\n"
            "parcel_weight_bucket{le=\"2\"} 0\nparcel_weight_bucket{le=\"+Inf\"} 1\n"
            "parcel_weight_sum 4\nparcel_weight_count 1\n");
  EXPECT_NE(page.render_json().find("parcel_size_count"), std::string::npos);
}

TEST(MetricSet, SumsWhatOthersCallTheSame) {
  ParcelMetrics metrics;
  MetricsPage page;
  metrics.add_others_to(page, "post:", "office=\"4\"");
  metrics.add_others_to(page, "harbour:");
  metrics.sent.add(3);
  metrics.kept.add(2);
  metrics.lost[0].add();
  metrics.lost[1].add();
  EXPECT_EQ(page.render("post:parcels"),
            "# HELP post:parcels_total Parcels.\n# TYPE post:parcels_total counter\n"
            "post:parcels_total{office=\"4\"} 5\n");
  EXPECT_EQ(page.render("post:lost"),
            "# HELP post:lost_total Lost.\n# TYPE post:lost_total counter\n"
            "post:lost_total{office=\"4\",place=\"any\"} 2\n");
  EXPECT_NE(page.render("post:weight").find("le=\"1\""), std::string::npos) << "all buckets";
  EXPECT_EQ(page.families().size(), 3u);
}

}  // namespace
}  // namespace chasqui
