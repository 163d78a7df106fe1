package jdk.internal.vm.annotation;

import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;

/** JDK 8 has it elsewhere. A JVM takes no notice of annotations whose class it does not know. */
@Retention(RetentionPolicy.RUNTIME)
public @interface DontInline {
}
