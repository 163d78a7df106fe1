package org.junit.jupiter.api.extension;

import java.lang.reflect.Method;

public interface InvocationInterceptor extends Extension {
    void interceptTestMethod(Invocation<Void> invocation, ReflectiveInvocationContext<Method> method, ExtensionContext context)
        throws Throwable;

    void interceptTestTemplateMethod(Invocation<Void> invocation, ReflectiveInvocationContext<Method> method, ExtensionContext context)
        throws Throwable;

    interface Invocation<T> {
        T proceed() throws Throwable;

        void skip();
    }
}
