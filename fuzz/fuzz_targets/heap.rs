#![no_main]
et_fuzz::fuzz!(et_fuzz_targets::trace::HEAP);
