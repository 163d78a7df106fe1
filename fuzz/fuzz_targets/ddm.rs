#![no_main]
et_fuzz::fuzz!(et_fuzz_targets::ddm::TARGET);
