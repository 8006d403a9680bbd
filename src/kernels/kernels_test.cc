// What the C ABI answers without a GPU: every wrong argument is a status and a sentence. Numbers
// are tested on a GPU by tests/gpu/kernels_test.py.
#include "topknot/kernels.h"

#include <gmock/gmock.h>

namespace {

using testing::HasSubstr;

topknot_mla_shape glm5_shape() {
  return {.struct_bytes = sizeof(topknot_mla_shape),
          .device = 0,
          .heads = 64,
          .kv_lora_rank = 512,
          .qk_rope_head_dim = 64,
          .row_format = TOPKNOT_ROWS_BF16,
          .dense = 0};
}

TEST(KernelsAbi, TheVersionIsThatOfTheHeader) {
  EXPECT_EQ(topknot_kernels_abi_version(), TOPKNOT_KERNELS_ABI_VERSION);
}

TEST(KernelsAbi, RowsHaveTheirPublishedSizes) {
  EXPECT_EQ(topknot_row_bytes(TOPKNOT_ROWS_BF16, 512, 64), 1152);
  EXPECT_EQ(topknot_row_bytes(TOPKNOT_ROWS_FP8_DS, 512, 64), 656);
  EXPECT_EQ(topknot_row_bytes(TOPKNOT_ROWS_Q8_0, 512, 64), 612);
  EXPECT_EQ(topknot_row_bytes(7, 512, 64), 0);
  EXPECT_EQ(topknot_row_bytes(TOPKNOT_ROWS_BF16, -1, 64), 0);
}

TEST(KernelsAbi, WrongShapesAreRefusedAndNothingIsMade) {
  topknot_mla* mla = nullptr;
  EXPECT_EQ(topknot_mla_create(nullptr, &mla), TOPKNOT_INVALID_ARGUMENT);
  EXPECT_THAT(topknot_last_error(), HasSubstr("null"));
  topknot_mla_shape shape = glm5_shape();
  EXPECT_EQ(topknot_mla_create(&shape, nullptr), TOPKNOT_INVALID_ARGUMENT);
  shape.struct_bytes = 4;
  EXPECT_EQ(topknot_mla_create(&shape, &mla), TOPKNOT_INVALID_ARGUMENT);
  EXPECT_THAT(topknot_last_error(), HasSubstr("struct_bytes is 4"));
  shape = glm5_shape();
  shape.heads = 0;
  EXPECT_EQ(topknot_mla_create(&shape, &mla), TOPKNOT_INVALID_ARGUMENT);
  EXPECT_THAT(topknot_last_error(), HasSubstr("heads is 0"));
  shape = glm5_shape();
  shape.row_format = 9;
  EXPECT_EQ(topknot_mla_create(&shape, &mla), TOPKNOT_INVALID_ARGUMENT);
  EXPECT_THAT(topknot_last_error(), HasSubstr("row_format is 9"));
  EXPECT_EQ(mla, nullptr);
}

TEST(KernelsAbi, ADeviceThatIsNotThereIsNotFoundWithItsRemedy) {
  topknot_mla_shape shape = glm5_shape();
  shape.device = 4096;
  topknot_mla* mla = nullptr;
  EXPECT_EQ(topknot_mla_create(&shape, &mla), TOPKNOT_NOT_FOUND);
  EXPECT_THAT(topknot_last_error(), HasSubstr("cuda:4096"));
  EXPECT_THAT(topknot_last_error(), HasSubstr("fix:"));
}

TEST(KernelsAbi, NullObjectsAreRefusedOrIgnored) {
  const topknot_mla_batch batch = {
      .struct_bytes = sizeof batch, .tokens = 1, .topk = 1, .max_visible = 0};
  EXPECT_EQ(topknot_mla_plan(nullptr, &batch), TOPKNOT_INVALID_ARGUMENT);
  EXPECT_EQ(topknot_mla_run(nullptr, nullptr, nullptr), TOPKNOT_INVALID_ARGUMENT);
  EXPECT_STREQ(topknot_mla_backend(nullptr), "");
  topknot_mla_destroy(nullptr);
}

TEST(KernelsAbi, IndexersAreCheckedLikeAttention) {
  topknot_indexer* indexer = nullptr;
  topknot_indexer_shape shape = {.struct_bytes = sizeof shape,
                                 .device = 4096,
                                 .heads = 32,
                                 .head_dim = 128,
                                 .topk = 2048,
                                 .max_tokens = 1,
                                 .max_context = 1 << 17,
                                 .key_format = TOPKNOT_ROWS_BF16};
  EXPECT_EQ(topknot_indexer_create(&shape, nullptr, &indexer), TOPKNOT_NOT_FOUND);
  EXPECT_THAT(topknot_last_error(), HasSubstr("cuda:4096"));
  shape.topk = 0;
  EXPECT_EQ(topknot_indexer_create(&shape, nullptr, &indexer), TOPKNOT_INVALID_ARGUMENT);
  EXPECT_THAT(topknot_last_error(), HasSubstr("topk is 0"));
  EXPECT_EQ(indexer, nullptr);
  EXPECT_EQ(topknot_indexer_run(nullptr, nullptr, nullptr), TOPKNOT_INVALID_ARGUMENT);
  topknot_indexer_destroy(nullptr);
}

TEST(KernelsAbi, SlotMapsAreCheckedBeforeALaunch) {
  alignas(16) int32_t four[4] = {};
  topknot_slot_map_args args = {};
  args.struct_bytes = sizeof args;
  args.positions = args.requests = args.block_table = four;
  args.slots = four;
  args.tokens = args.width = args.max_pages = 1;
  EXPECT_EQ(topknot_slot_map(&args, nullptr), TOPKNOT_INVALID_ARGUMENT) << "page_tokens is 0";
  EXPECT_THAT(topknot_last_error(), HasSubstr("page_tokens is 0"));
  args.page_tokens = 64;
  args.positions = four + 1;
  EXPECT_EQ(topknot_slot_map(&args, nullptr), TOPKNOT_INVALID_ARGUMENT);
  EXPECT_THAT(topknot_last_error(), HasSubstr("not aligned"));
  args.tokens = 0;
  EXPECT_EQ(topknot_slot_map(&args, nullptr), TOPKNOT_OK) << "nothing is to be done";
}

}  // namespace
