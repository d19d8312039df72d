package spt.connectors;

import java.lang.reflect.AccessibleObject;
import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.Map;
import org.apache.flink.core.io.SimpleVersionedSerializer;

/** Classes and members that are not public, or that only some versions have. */
public final class Reflect {
    private static final Map<Class<?>, Class<?>> BOXES =
            Map.of(int.class, Integer.class, long.class, Long.class, short.class, Short.class, byte.class, Byte.class, boolean.class, Boolean.class);

    private Reflect() {}

    public static boolean exists(String name) {
        try {
            Class.forName(name);
            return true;
        } catch (ClassNotFoundException missing) {
            return false;
        }
    }

    /** A new object, by the first constructor that accepts the arguments. */
    public static Object make(String name, Object... args) throws Exception {
        for (Constructor<?> c : Class.forName(name).getDeclaredConstructors()) {
            if (accepts(c.getParameterTypes(), args)) {
                try {
                    return open(c).newInstance(args);
                } catch (InvocationTargetException e) {
                    throw new IllegalStateException(name, e.getCause());
                }
            }
        }
        throw new NoSuchMethodException("no constructor of " + name + " for " + args.length + " arguments");
    }

    @SuppressWarnings("unchecked")
    public static <T> SimpleVersionedSerializer<T> serializer(String name, Object... args) throws Exception {
        return (SimpleVersionedSerializer<T>) make(name, args);
    }

    /** Calls a method of an object, or a static one of a class. */
    public static Object call(Object on, String method, Object... args) throws Exception {
        for (Class<?> c = on instanceof Class ? (Class<?>) on : on.getClass(); c != null; c = c.getSuperclass()) {
            for (Method m : c.getDeclaredMethods()) {
                if (m.getName().equals(method) && !m.isBridge() && accepts(m.getParameterTypes(), args)) {
                    try {
                        return open(m).invoke(on, args);
                    } catch (InvocationTargetException e) {
                        throw (Exception) e.getCause();
                    }
                }
            }
        }
        throw new NoSuchMethodException(on + " has no method " + method);
    }

    /** The value of a field of an object, or of a static one of a class. */
    public static Object field(Object of, String name) throws Exception {
        for (Class<?> c = of instanceof Class ? (Class<?>) of : of.getClass(); c != null; c = c.getSuperclass()) {
            for (Field f : c.getDeclaredFields()) {
                if (f.getName().equals(name)) {
                    return open(f).get(of);
                }
            }
        }
        throw new NoSuchFieldException(of + " has no field " + name);
    }

    /** Sets a field of an object. */
    public static void set(Object of, String name, Object value) throws Exception {
        Field f = of.getClass().getDeclaredField(name);
        open(f).set(of, value);
    }

    private static boolean accepts(Class<?>[] types, Object[] args) {
        if (types.length != args.length) {
            return false;
        }
        for (int i = 0; i < types.length; i++) {
            Class<?> type = BOXES.getOrDefault(types[i], types[i]);
            if (args[i] == null ? types[i].isPrimitive() : !type.isInstance(args[i])) {
                return false;
            }
        }
        return true;
    }

    private static <T extends AccessibleObject> T open(T member) {
        member.setAccessible(true);
        return member;
    }
}
