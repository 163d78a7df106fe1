package org.elephanttracks.test;

import java.lang.invoke.CallSite;
import java.lang.invoke.LambdaMetafactory;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.ArrayList;
import java.util.List;

/** A call that allocates nothing itself: what javac makes of {@code () -> target.method(arguments)}. */
final class Call {
    private Call() {
    }

    static Action of(Method method, Object target, List<Object> arguments) throws Throwable {
        MethodHandles.Lookup lookup = MethodHandles.privateLookupIn(method.getDeclaringClass(), MethodHandles.lookup());
        MethodHandle called = lookup.unreflect(method);
        List<Object> captured = new ArrayList<>();
        if (!Modifier.isStatic(method.getModifiers())) {
            captured.add(target);
        }
        captured.addAll(arguments);
        MethodType factory = called.type().changeReturnType(Action.class);
        MethodType nothing = MethodType.methodType(void.class);
        CallSite site = LambdaMetafactory.metafactory(lookup, "run", factory, nothing, called, nothing);
        return (Action) site.getTarget().invokeWithArguments(captured);
    }
}
