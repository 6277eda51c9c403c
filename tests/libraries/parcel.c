// For base/shared_library_test.
int parcel_weight(int parcels);

int parcel_weight(int parcels) { return 7 * parcels; }
