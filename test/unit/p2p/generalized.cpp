// Generalized requests: when each callback runs.
#include "fixture.h"

namespace near::p2p {
namespace {

class GeneralizedRequests : public Messages {
protected:
  void SetUp() override {
    Messages::SetUp();
    queries = frees = cancels = 0;
    query_error = MPI_SUCCESS;
  }
  static int query(void*, MPI_Status* status) {
    ++queries;
    status->MPI_SOURCE = 11;
    status->MPI_TAG = 22;
    set_status_bytes(*status, 33);
    return query_error;
  }
  static int free_function(void*) {
    ++frees;
    return MPI_SUCCESS;
  }
  static int cancel_function(void*, int complete) {
    cancels += complete ? 100 : 1;
    return MPI_SUCCESS;
  }
  Request* make() {
    Request* request = nullptr;
    EXPECT_TRUE(make_generalized(query, free_function, cancel_function, nullptr, request).ok());
    return request;
  }
  static inline int queries, frees, cancels, query_error;
};

TEST_F(GeneralizedRequests, query_and_free_run_once_at_completion) {
  Request* request = make();
  ASSERT_TRUE(complete_generalized(*request).ok());
  EXPECT_EQ(complete_generalized(*request).code(), MPI_ERR_REQUEST);
  MPI_Status status;
  EXPECT_TRUE(peek(*request, &status).ok());
  EXPECT_EQ(frees, 0);
  EXPECT_TRUE(wait(request, &status).ok());
  EXPECT_EQ(status.MPI_SOURCE, 11);
  EXPECT_EQ(status_bytes(status), 33);
  EXPECT_EQ(queries, 2);
  EXPECT_EQ(frees, 1);
}

TEST_F(GeneralizedRequests, the_query_runs_for_an_ignored_status_too_and_its_error_is_raised) {
  Request* request = make();
  ASSERT_TRUE(complete_generalized(*request).ok());
  query_error = MPI_ERR_OTHER;
  EXPECT_EQ(wait(request).code(), MPI_ERR_OTHER);
  EXPECT_EQ(frees, 1);
}

TEST_F(GeneralizedRequests, free_runs_when_both_free_and_complete_have_happened) {
  Request* request = make();
  MPI_Request handle = public_handle(*request);
  free_request(handle, *request);
  EXPECT_EQ(frees, 0);
  ASSERT_TRUE(complete_generalized(*request).ok());
  EXPECT_EQ(frees, 1);
  EXPECT_EQ(queries, 0);
}

TEST_F(GeneralizedRequests, cancel_tells_whether_it_is_complete) {
  Request* request = make();
  ASSERT_TRUE(cancel(*request).ok());
  EXPECT_EQ(cancels, 1);
  ASSERT_TRUE(complete_generalized(*request).ok());
  ASSERT_TRUE(cancel(*request).ok());
  EXPECT_EQ(cancels, 101);
  EXPECT_TRUE(wait(request).ok());
}

} // namespace
} // namespace near::p2p
