use proptest::prelude::*;

use super::*;

/// Runs in which contexts allocate these amounts: context, class, bytes.
fn differ(calls: &[u32], before: &[(usize, u32, u64)], after: &[(usize, u32, u64)]) -> Differ {
    let mut differ = Differ::default();
    let names: Vec<u32> = (0..4).map(|name| differ.keys.name(&format!("shop.Main.m{name}"))).collect();
    let classes: Vec<u32> = (0..3).map(|class| differ.keys.name(&format!("shop.C{class}"))).collect();
    let mut contexts = vec![0];
    for (index, &caller) in calls.iter().enumerate() {
        let caller = contexts[caller as usize % contexts.len()];
        contexts.push(differ.keys.call(caller, names[index % names.len()]));
    }
    for (side, cells) in differ.sides.iter_mut().zip([before, after]) {
        let mut run = Run::default();
        for &(context, class, bytes) in cells {
            let numbers = Numbers { allocated: Amount { objects: 1, bytes }, alive: Amount::default() };
            let key = (contexts[context % contexts.len()], classes[class as usize % classes.len()]);
            run.total.add(&numbers);
            run.contexts.entry(key).or_default().add(&numbers);
        }
        side.push(run);
    }
    differ
}

fn cells() -> impl Strategy<Value = Vec<(usize, u32, u64)>> {
    prop::collection::vec((0usize..12, 0u32..3, 1u64..1000), 0..20)
}

proptest! {
    #[test]
    fn boxes_of_a_difference_add_up(calls in prop::collection::vec(0u32..12, 0..12), before in cells(), after in cells()) {
        let differ = differ(&calls, &before, &after);
        let flame = differ.flame(Counted::Allocated);
        let root = &flame.frames[0];
        let sum = |cells: &[(usize, u32, u64)]| cells.iter().map(|(.., bytes)| bytes).sum::<u64>();
        prop_assert_eq!((root.bytes[0], root.bytes[1]), (sum(&after), sum(&before)));
        let mut above = vec![[0u64; 4]; flame.frames.len()];
        for (index, frame) in flame.frames.iter().enumerate() {
            // Increase and decrease add up to the difference.
            prop_assert_eq!(frame.bytes[0] + frame.bytes[3], frame.bytes[1] + frame.bytes[2]);
            if index > 0 {
                prop_assert!((frame.parent as usize) < index);
                above[frame.parent as usize].iter_mut().zip(&frame.bytes).for_each(|(sum, part)| *sum += part);
            }
        }
        for (frame, above) in flame.frames.iter().zip(above) {
            let is_class = flame.names[frame.name as usize].kind == FrameKind::Class;
            // Nothing is so small here that it is folded: all of a method is its callees' and its classes'.
            prop_assert!(is_class || flame.folded > 0 || frame.bytes == above, "{:?} {:?}", frame, above);
        }
    }
}

#[test]
fn what_moves_from_one_caller_to_another_is_seen() {
    // main calls m1 and m2 (contexts 1, 2 and 3); 100 bytes go from one to the other.
    let differ = differ(&[0, 1, 1], &[(2, 0, 100)], &[(3, 0, 100)]);
    let flame = differ.flame(Counted::Allocated);
    assert_eq!(flame.frames[0].bytes, [100, 100, 100, 100]);
    let diff = differ.diff(&Show { least_share: 0.0, top: 10, matching: None });
    assert_eq!((diff.total.bytes.by(), diff.contexts.changed), (0, 2));
    let only = differ.diff(&Show { least_share: 0.0, top: 10, matching: Some("m2".into()) });
    assert_eq!(only.contexts.lines.len(), 1, "{only:?}");
    assert_eq!(only.contexts.lines[0].method.as_deref(), Some("shop.Main.m2"));
}

#[test]
fn a_condition_on_a_class_that_no_run_has_is_reported() {
    let mut differ = differ(&[0], &[(1, 0, 100)], &[(1, 0, 100)]);
    let class = differ.keys.name("shop.C0");
    differ.sides[1][0].classes.insert(class, Numbers::default());
    let missing = |text: &str| text.parse::<Condition>().unwrap().missing_class(&differ).map(str::to_owned);
    assert_eq!(missing("objects of shop.C0 > +0"), None, "one run is enough");
    assert_eq!(missing("objects > +0"), None);
    assert_eq!(missing("objects of shop.Cc > +0").as_deref(), Some("shop.Cc"));
    assert_eq!(missing("objects of shop.Main.m0 > +0").as_deref(), Some("shop.Main.m0"), "that is a method");
    assert_eq!((differ.class_like("c0"), differ.class_like("shop.Cc")), (Some("shop.C0"), None));
    assert!(differ.has_name_with("Main.m1") && !differ.has_name_with("Main.m9"));
}
