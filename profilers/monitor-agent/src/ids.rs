//! Numbers of objects, which stay theirs for life. The number of a class is that of its `java.lang.Class`.

use et_jvm::env::{Env, Object};

use crate::state::Monitor;
use crate::{classes, tags};

/// The number of an object that may have none; 0 then.
pub fn known(monitor: &Monitor, object: Object) -> u64 {
    monitor.jvmti.tag(object).map_or(0, tags::of_tag)
}

/// The number of an object, which gets one if it has none. Then it is defined in the log, too.
pub fn of(monitor: &Monitor, env: Env, object: Object) -> u64 {
    let there = known(monitor, object);
    if there != 0 {
        return there;
    }
    env.frame(8, |env| {
        let Some(class) = env.class_of(object) else { return 0 };
        if classes::is_class(monitor, env, object) {
            return classes::tag_of(monitor, env, object).id;
        }
        let class_id = classes::tag_of(monitor, env, class).id;
        let _one = tags::tagging_in_callback();
        let there = known(monitor, object);
        if there != 0 {
            return there;
        }
        let id = tags::fresh();
        if let Some(xml) = &monitor.xml {
            let is_array = monitor.jvmti.class_signature(class).is_ok_and(|name| name.starts_with('['));
            xml.define_object(id, class_id, monitor.jvmti.object_size(object).ok(), is_array);
        }
        match monitor.jvmti.set_tag(object, id as i64) {
            Ok(()) => id,
            Err(_) => 0,
        }
    })
}

/// The object with this id.
pub fn find<'a>(monitor: &Monitor, env: Env<'a>, id: u64) -> Option<Object<'a>> {
    let plain = i64::try_from(id).ok().filter(|tag| *tag > 0 && *tag < tags::DECIDED)?;
    let tags = [plain, plain | tags::DECIDED, plain | tags::DECIDED | tags::EXCLUDED];
    let found = monitor.jvmti.objects_with_tags(env, &tags).ok()?;
    found.into_iter().next().map(|(object, _)| object)
}
