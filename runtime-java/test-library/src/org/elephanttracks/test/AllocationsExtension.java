package org.elephanttracks.test;

import java.lang.reflect.AnnotatedElement;
import java.lang.reflect.Method;

import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.InvocationInterceptor;
import org.junit.jupiter.api.extension.ReflectiveInvocationContext;

/** What {@link MaxAllocations} and {@link NoAllocations} mean to JUnit 5. */
public final class AllocationsExtension implements InvocationInterceptor {
    @Override
    public void interceptTestMethod(Invocation<Void> invocation, ReflectiveInvocationContext<Method> method, ExtensionContext context)
        throws Throwable {
        check(invocation, method);
    }

    @Override
    public void interceptTestTemplateMethod(
        Invocation<Void> invocation, ReflectiveInvocationContext<Method> method, ExtensionContext context) throws Throwable {
        check(invocation, method);
    }

    private static void check(Invocation<Void> invocation, ReflectiveInvocationContext<Method> method) throws Throwable {
        Limit limit = Limit.of(method.getExecutable());
        for (Class<?> type = method.getTargetClass(); limit == null && type != null; type = type.getEnclosingClass()) {
            limit = Limit.of(type);
        }
        if (limit == null) {
            invocation.proceed();
            return;
        }
        Jvm.require();
        // JUnit would call it by reflection, which allocates, and once only.
        invocation.skip();
        Object target = method.getTarget().orElse(null);
        Action action = Call.of(method.getExecutable(), target, method.getArguments());
        Counting counting = Allocations.counting().warmUp(limit.warmUp);
        if (limit.allThreads) {
            counting.allThreads();
        }
        counting.of(action).check(limit.objects, limit.bytes);
    }

    /** What the annotation of a method or class says. */
    private static final class Limit {
        final long objects;
        final long bytes;
        final int warmUp;
        final boolean allThreads;

        private Limit(long objects, long bytes, int warmUp, boolean allThreads) {
            this.objects = objects;
            this.bytes = bytes;
            this.warmUp = warmUp;
            this.allThreads = allThreads;
        }

        static Limit of(AnnotatedElement element) {
            NoAllocations none = element.getAnnotation(NoAllocations.class);
            MaxAllocations most = element.getAnnotation(MaxAllocations.class);
            if (none != null && most != null) {
                throw new IllegalArgumentException(element + " has both @NoAllocations and @MaxAllocations: leave one out");
            }
            if (none != null) {
                return new Limit(0, -1, none.warmUp(), none.allThreads());
            }
            if (most == null) {
                return null;
            }
            if (most.objects() < 0 && most.bytes() < 0) {
                throw new IllegalArgumentException("@MaxAllocations of " + element + " has no limit: say objects = …, bytes = … or both");
            }
            return new Limit(most.objects(), most.bytes(), most.warmUp(), most.allThreads());
        }
    }
}
